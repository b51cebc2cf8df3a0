"""How ./environment/lab sets up JupyterLab, which reads this file at its start.

Settings of the page itself are in labconfig: no question about news, and time
for the first completion, while the language server is still loading.
"""

import sysconfig
from pathlib import Path

import nbformat
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

TEMPLATE = Path(__file__).with_name("template.ipynb")


class Notebooks(AsyncLargeFileManager):
    """The files of JupyterLab. A new notebook begins as the template."""

    async def new(self, model=None, path=""):
        model = dict(model or {})
        kind = model.get("type", "notebook" if path.endswith(".ipynb") else "file")
        if kind == "notebook" and "content" not in model:
            model.update(type="notebook", format="json", content=nbformat.read(TEMPLATE, as_version=4))
        return await super().new(model, path)


c = get_config()  # noqa: F821 (Jupyter defines it)
c.ServerApp.contents_manager_class = Notebooks
c.ServerApp.answer_yes = True  # Ctrl-C ends it and its kernels at once
c.MultiKernelManager.default_kernel_name = "gonb"
c.KernelSpecManager.ensure_native_kernel = False
c.KernelSpecManager.allowed_kernelspecs = {"gonb"}
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
# What the kernel says first counts for its status, which JupyterLab else shows as unknown until a cell runs.
c.MappingKernelManager.untracked_message_types = []
# What would end in an error page here (pandoc, LaTeX, another browser) or needs a network is not offered for export.
for name in ("ASCIIDoc", "Latex", "PDF", "QtPDF", "QtPNG", "RST", "Slides", "WebPDF"):
    c[f"{name}Exporter"].enabled = False
c.HTMLExporter.template_name = "export"
c.HTMLExporter.extra_template_basedirs = [str(TEMPLATE.parent)]
c.HTMLExporter.extra_template_paths = [f"{sysconfig.get_path('purelib')}/sphinx-mathjax-offline/static/mathjax"]
