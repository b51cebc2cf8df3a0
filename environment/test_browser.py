"""Tests in a real browser: JupyterLab as a person uses it, and the pages.

Needs Chromium and Playwright, and in out/test the pages and the executed notebooks
of ./environment/test, so run this through it.
"""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import nbformat
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import test_scripts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MADE = ROOT / "out" / "test"
PHONE, DESKTOP = {"width": 390, "height": 800}, {"width": 1440, "height": 900}


def setUpModule():
    global chromium
    playwright = sync_playwright().start()
    unittest.addModuleCleanup(playwright.stop)
    chromium = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"])
    unittest.addModuleCleanup(chromium.close)


class Browser(unittest.TestCase):
    def open(self, width=DESKTOP, scheme="light"):
        """A new page of the browser, and the list of what it fetches from elsewhere, or not at all, and of its errors."""
        context = chromium.new_context(viewport=width, color_scheme=scheme, has_touch=width == PHONE)
        context.set_default_timeout(180_000)
        self.addCleanup(context.close)
        page, troubles = context.new_page(), []
        # What it looked like in the end, for whoever wonders why a test failed.
        self.addCleanup(lambda: page.screenshot(path=MADE / "browser" / f"{self.id()}.png"))
        page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.append(f"not loaded: {request.url}"))
        page.on("request", lambda request: request.url.startswith("http") and troubles.append(f"from elsewhere: {request.url}"))
        return page, troubles

    def assert_accessible(self, page):
        """What axe-core finds is nothing."""
        found = Axe().run(page, options={"preload": False})
        self.assertGreater(len(found.response["passes"]), 15)
        self.assertEqual(found.response["violations"], [])


class Lab(Browser):
    """JupyterLab, as whoever opens it for the first time uses it."""

    @classmethod
    def setUpClass(cls):
        workspaces = tempfile.TemporaryDirectory()
        cls.addClassCleanup(workspaces.cleanup)
        cls.process, cls.server, cls.token = test_scripts.start_lab(cls, JUPYTERLAB_WORKSPACES_DIR=workspaces.name)
        cls.addClassCleanup(cls.end)

    @classmethod
    def end(cls):
        """Ends JupyterLab, and with it its kernels."""
        cls.process.terminate()
        try:
            cls.process.wait(timeout=60)
        except subprocess.TimeoutExpired:  # it was about to save
            cls.process.kill()

    def setUp(self):
        # Inside the checkout, where JupyterLab can save.
        folder = tempfile.TemporaryDirectory(dir=HERE)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.page, _ = self.open()
        self.address = f"{self.server}/lab/tree/{self.folder.relative_to(ROOT)}"
        self.page.goto(f"{self.address}?token={self.token}")
        self.page.locator(f'.jp-BreadCrumbs [title="{self.folder.relative_to(ROOT)}"]').wait_for()

    def seen(self, selector):
        """Waits until a thing of the notebook that is in front can be seen, and returns it."""
        found = self.page.locator(f".jp-NotebookPanel:not(.lm-mod-hidden) {selector}").last
        found.wait_for()
        return found

    def idle(self):
        """Waits until the status says that the kernel is there, before any cell has run."""
        self.page.get_by_text(re.compile(r"\| Idle$")).wait_for()

    def run_cell(self, code):
        """Runs code in a new cell at the end, and returns the cell."""
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("b")
        self.page.keyboard.press("Enter")
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Control+Enter")
        return self.seen(".jp-CodeCell.jp-mod-selected")

    def test_first_minutes(self):
        page = self.page
        page.get_by_role("menuitem", name="File", exact=True).click()
        page.locator(".lm-Menu-item", has=page.get_by_text("New", exact=True)).click()
        page.locator('.lm-Menu-item[data-command="notebook:create-new"]').first.click()

        # Nobody asks anything, and the template is there.
        self.seen(':text("Statements stand below a line that reads")')
        self.assertEqual(page.locator(".jp-Dialog, .Toastify__toast").count(), 0)

        # The kernel is just starting: Tab inserts nothing until the language server is there, too.
        self.idle()
        self.seen(".jp-CodeCell .cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("\nyacht.")  # yacht := ... is above
        completed = page.locator(".jp-Completer-item", has_text="Features")
        for _ in range(60):
            page.keyboard.press("Tab")
            page.wait_for_timeout(3000)
            if completed.count():
                break
            self.assertRegex(self.seen(".jp-CodeCell .cm-content").inner_text(), r"\nyacht\.$")
        completed.first.wait_for()
        page.keyboard.press("Escape")
        for _ in "\nyacht.":
            page.keyboard.press("Backspace")

        # The first cell works.
        page.keyboard.press("Control+Enter")
        self.seen(':text("308 examples of 6 inputs")')

        # What everybody tries first works, or says in one line what to do.
        self.run_cell('fmt.Println("hi")').get_by_text("Statements go below a line that reads %%").wait_for()
        self.run_cell('%%\nfmt.Println("hi")').locator(".jp-OutputArea").get_by_text("hi", exact=True).wait_for()
        self.run_cell('import "densityuncertainty/dul"\n\n%%\nfmt.Printf("%T", dul.Density{})').locator(".jp-OutputArea").get_by_text("dul.Density", exact=True).wait_for()
        self.run_cell('import "example.com/none"\n\n%%\nnone.None()').get_by_text("!*with-network go get").first.wait_for()

    def test_after_a_restart(self):
        """What was kept is there, and a cell that needs another one says which."""
        page = self.page
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "gonb", "display_name": "Go (gonb)"}})
        keeps = 'import "densityuncertainty/environment/notebook"\n\nfunc twice(x int) int { return 2 * x }\n\n%%\nnotebook.Keep("number", twice(21))'
        needs = 'import "densityuncertainty/environment/notebook"\n\n%%\n'
        notebook.cells = [nbformat.v4.new_markdown_cell("## 1. The start")]
        notebook.cells += [nbformat.v4.new_code_cell(text) for text in (keeps, needs + 'fmt.Println("kept", notebook.Kept[int]("number"))')]
        notebook.cells += [nbformat.v4.new_code_cell(needs + 'fmt.Println("other", notebook.Kept[int]("other"))'), nbformat.v4.new_code_cell("%%\nfmt.Println(twice(1))")]
        nbformat.write(notebook, self.folder / "restart.ipynb")
        kept = ROOT / "out" / "kept"
        before = set(kept.glob("*"))
        self.addCleanup(lambda: [shutil.rmtree(path) for path in set(kept.glob("*")) - before])
        page.goto(f"{self.address}/restart.ipynb")
        self.seen(".jp-CodeCell .cm-content")
        self.idle()
        cells = page.locator(".jp-CodeCell")

        def run(number, says):
            cells.nth(number).locator(".cm-content").click()
            page.keyboard.press("Control+Enter")
            cells.nth(number).get_by_text(says).first.wait_for()

        run(0, "[1]:")
        run(1, "kept 42")
        page.keyboard.press("Escape")
        page.keyboard.press("0")
        page.keyboard.press("0")
        page.locator(".jp-Dialog-button.jp-mod-accept").click()
        page.wait_for_timeout(1000)
        self.idle()
        run(1, "kept 42")
        cells.nth(1).get_by_text("was kept on").wait_for()
        run(2, "no cell has kept “other”")
        run(3, "is declared in the cell with “func twice” below “1. The start”")


MEASURE = """() => ({
  width: document.documentElement.scrollWidth,
  formulas: document.querySelectorAll(".math").length,
  drawn: document.querySelectorAll(".math mjx-container").length,
  wrong: document.querySelectorAll("mjx-merror, [data-mjx-error]").length,
  wide: [...document.querySelectorAll("div.math, pre, article p > .math svg")].filter((e) => e.scrollWidth > e.clientWidth || e.getBoundingClientRect().right > innerWidth).map((e) => e.textContent.slice(0, 80)),
  images: [...document.images].filter((e) => e.complete && e.naturalWidth === 0).map((e) => e.alt),
})"""


class Pages(Browser):
    def test_every_page_on_a_phone_and_on_a_desk(self):
        page, troubles = self.open()
        for path in sorted((MADE / "html").rglob("*.html")):
            with self.subTest(path.name):
                page.set_viewport_size(PHONE)
                page.goto(path.as_uri())
                page.evaluate("() => window.MathJax?.startup?.promise")
                if path.name == "live.html":  # whose program is else left while it is loaded
                    page.wait_for_function("document.documentElement.dataset.firstBand")
                found = page.evaluate(MEASURE)
                self.assertEqual((found["width"], found["wrong"], found["wide"], found["images"]), (PHONE["width"], 0, [], []))
                self.assertEqual(found["drawn"], found["formulas"])
                page.set_viewport_size(DESKTOP)
                found = page.evaluate(MEASURE)
                self.assertEqual((found["width"], found["wide"]), (DESKTOP["width"], []))
                self.assertEqual(troubles, [])

    def test_first_page(self):
        """It is three screens of a phone at most, and its cards and buttons lead on."""
        page, troubles = self.open(PHONE)
        page.goto((MADE / "index.html").as_uri())
        page.locator(".sd-card").first.wait_for()  # it forwards
        self.assertLess(page.evaluate("document.documentElement.scrollHeight"), 3 * 844)
        page.locator(".sd-card").first.click()
        page.wait_for_url("**/00_start_here.html")
        page.go_back()
        page.get_by_text("Try it live").click()
        page.wait_for_url("**/live.html")
        self.assertEqual(troubles, [])

    def test_handout(self):
        """It is printed on one page."""
        page, _ = self.open()
        page.goto((MADE / "html" / "handout.html").as_uri())
        page.evaluate("() => window.MathJax?.startup?.promise")
        for size in ("A4", "Letter"):
            self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", page.pdf(format=size))), 1, size)

    def test_sliders(self):
        """Without a kernel a slider changes the picture, by mouse and keyboard, and the others go back."""
        page, troubles = self.open()
        page.goto((MADE / "html" / "notebooks" / "01_figure1.html").as_uri())
        sliders, seen = page.locator("input[type=range]"), page.locator("[oninput] img:visible")
        start = seen.first.get_attribute("alt")
        sliders.nth(2).click(position={"x": 4, "y": 4})
        self.assertEqual((seen.first.get_attribute("alt"), page.locator("output").nth(2).text_content()), (start.removesuffix("8") + "0", "0"))
        sliders.nth(0).focus()
        page.keyboard.press("ArrowLeft")
        self.assertEqual(seen.first.get_attribute("alt"), start.replace("γ 0.18", "γ 0.135"))
        self.assertEqual((seen.count(), troubles), (2, []))

    def test_a_tap_enlarges_a_picture(self):
        page, _ = self.open(PHONE)
        page.goto((MADE / "html" / "notebooks" / "01_figure1.html").as_uri())
        page.locator("article img:visible").first.tap()
        self.assertGreater(page.locator("dialog img").bounding_box()["width"], 2 * PHONE["width"])
        page.locator("dialog img").tap()
        page.locator("dialog").wait_for(state="detached")

    def test_accessibility(self):
        names = ["index", "search", "notebooks/01_figure1", "notebooks/08_ood", "figures/uci/tables", "handout"]
        for scheme, width in (("light", DESKTOP), ("dark", PHONE)):
            page, _ = self.open(width, scheme)
            for name in names:
                with self.subTest(name, scheme=scheme, width=width["width"]):
                    page.goto((MADE / "html" / f"{name}.html").as_uri())
                    page.evaluate("() => window.MathJax?.startup?.promise")
                    self.assert_accessible(page)


LOOK = """() => {
  const slide = Reveal.getCurrentSlide(), seen = (e) => e.getClientRects().length > 0 && !e.closest("aside, mjx-container");
  const all = [...slide.querySelectorAll("h1, h2, p, li, table, pre, small, img, [oninput] > div")].filter(seen);
  const boxes = all.filter((e) => !all.some((other) => other !== e && other.contains(e)));
  const sides = (e) => { const {left, right, top, bottom} = e.getBoundingClientRect(); return [left, right, top, bottom]; };
  const name = (e) => `${e.tagName} ${e.textContent.trim().slice(0, 40)}`;
  const small = [], overlap = [];
  const label = (text, size) => size < 18 && small.push(`${text.trim()}: ${size}`);
  for (const [i, e] of boxes.entries()) {
    const [left, right, top, bottom] = sides(e);
    if (left < 0 || top < 0 || right > innerWidth || bottom > innerHeight) overlap.push(`${name(e)}: not on the slide`);
    for (const other of boxes.slice(i + 1)) {
      const [l, r, t, b] = sides(other);
      if (Math.min(r, right) - Math.max(l, left) > 1 && Math.min(b, bottom) - Math.max(t, top) > 1) overlap.push(`${name(e)}, ${name(other)}`);
    }
    if (e.tagName !== "IMG" || !e.src.startsWith("data:image/svg+xml;base64,")) continue;
    const bytes = Uint8Array.from(atob(e.src.split(",")[1]), (c) => c.charCodeAt(0));
    const svg = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml").documentElement;
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const scale = Math.min((right - left) / width, (bottom - top) / height);
    for (const text of svg.querySelectorAll("text")) label(text.textContent, scale * Number(/font-size:([0-9.]+)px/.exec(text.getAttribute("style"))[1]));
  }
  const walk = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    if (walk.currentNode.data.trim() && seen(parent)) label(walk.currentNode.data, Reveal.getScale() * parseFloat(getComputedStyle(parent).fontSize));
  }
  return {overlap, small};
}"""


class Slides(Browser):
    def test_nothing_overlaps_and_labels_can_be_read(self):
        names = [path.stem for path in ROOT.glob("notebooks/*.ipynb") if '"slide_type"' in path.read_text()]
        subprocess.run([HERE / "slides", *names], check=True, capture_output=True, text=True)
        page, troubles = self.open({"width": 1280, "height": 720})
        for name in sorted(names):
            page.goto((ROOT / "out" / "slides" / f"{name}.slides.html").as_uri())
            page.wait_for_function("window.Reveal?.isReady()")
            for number in range(page.evaluate("Reveal.getTotalSlides()")):
                with self.subTest(name, slide=number + 1):
                    page.evaluate("(n) => Reveal.slide(n)", number)
                    page.wait_for_function("[...Reveal.getCurrentSlide().querySelectorAll('img')].every((e) => e.complete)")
                    self.assertEqual(page.evaluate(LOOK), {"overlap": [], "small": []})
        self.assertEqual(troubles, [])


class Live(Browser):
    """The page on which the method runs."""

    def start(self, address=None, **settings):
        """Opens the page and waits for the first band."""
        page, troubles = self.open(**settings)
        page.goto(address or (MADE / "html" / "live.html").as_uri())
        page.wait_for_function("document.documentElement.dataset.firstBand")
        return page, troubles

    def native(self, request):
        """The last reply of the same Go code, compiled for this machine."""
        command = ["go", "run", "./figures/cmd/live"]
        done = subprocess.run(command, cwd=ROOT, input=json.dumps(request), capture_output=True, text=True, timeout=600, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    def assert_close(self, got, want):
        self.assertLess(abs(got / want - 1), 1e-5, f"{got} in the browser, {want} natively")

    def test_points_and_gap_ratio(self):
        page, troubles = self.start()
        for name, value in (("steps", 200), ("pretraining", 100), ("width", 10)):
            page.locator(f"#{name}").fill(str(value))
        page.locator("#show-locations").check()
        canvas = page.locator("#panel-mfvi canvas")

        def count():
            return page.evaluate("figure.points.list.length")

        def at(x, y):
            left, top = page.evaluate(f"figure.panels[2].axes.toPixels({{x: {x}, y: {y}}})")
            box = canvas.bounding_box()
            return box["x"] + left, box["y"] + top

        canvas.scroll_into_view_if_needed()
        self.assertEqual(count(), 100)
        page.mouse.click(*at(0, 50))
        self.assertEqual(count(), 101)

        # A drag moves it, and is undone at once.
        page.mouse.move(*at(0, 50))
        page.mouse.down()
        page.mouse.move(*at(0.5, 20), steps=5)
        page.mouse.up()
        moved = page.evaluate("figure.points.list[100]")
        self.assertAlmostEqual(moved["x"], 0.5, delta=0.1)
        self.assertAlmostEqual(moved["y"], 20, delta=2)
        page.get_by_role("button", name="Undo").click()
        self.assertAlmostEqual(page.evaluate("figure.points.list[100].y"), 50, delta=2)

        # The keyboard adds, moves, chooses and removes.
        page.locator("#panel-density .plot").focus()
        page.keyboard.press("a")
        page.keyboard.press("Shift+ArrowUp")
        page.keyboard.press("ArrowLeft")
        self.assertEqual(count(), 102)
        added = page.evaluate("figure.points.list[101]")
        self.assertAlmostEqual(added["x"], -0.12)
        self.assertAlmostEqual(added["y"], 10)
        page.locator("#said", has_text="Point 102 of 102: -0.12, 10.00").wait_for(state="attached")
        page.keyboard.press("PageDown")
        self.assertEqual(page.evaluate("figure.points.selected"), 100)
        page.keyboard.press("Delete")
        self.assertEqual(count(), 101)

        # A hole, by the button and with Shift.
        page.get_by_role("button", name="Sweep a hole").click()
        page.mouse.move(*at(-3.5, -60))
        page.mouse.down()
        page.mouse.move(*at(-2.5, -60), steps=5)
        page.mouse.up()
        self.assertEqual(page.evaluate("figure.points.list.filter(({x}) => x > -3.49 && x < -2.51).length"), 0)
        swept = count()
        page.keyboard.down("Shift")
        page.mouse.move(*at(2.9, -60))
        page.mouse.down()
        page.mouse.move(*at(3.1, -60), steps=5)
        page.mouse.up()
        page.keyboard.up("Shift")
        self.assertLess(count(), swept)

        # All methods are trained, and their ratios are those of Go on this machine.
        page.wait_for_function("document.querySelectorAll('.panel[data-ratio]').length === 6", timeout=300000)
        for method in ("density", "locations", "mfvi", "rank1", "mcdropout", "ensemble"):
            with self.subTest(method):
                band = self.native({"train": page.evaluate(f"figure.request('{method}')")})["band"]
                self.assertEqual(len(band["gaps"]), 3)
                self.assert_close(float(page.locator(f"#panel-{method}").get_attribute("data-ratio")), band["ratio"])
                self.assertEqual(page.locator(f"#panel-{method} .ratio output").text_content(), f"{band['ratio']:.2f}")
        ratio = page.locator("#panel-density .ratio output").text_content()
        self.assertIn(f"In the gaps density is {ratio} times as wide as at your points, the location mixture", page.locator("#lesson").text_content())
        page.get_by_role("button", name="Start again").click()
        self.assertIn("HMC’s band is 6.3 times", page.locator("#lesson").text_content())
        self.assertEqual((count(), page.locator("#steps").input_value(), page.locator("#noise").input_value()), (100, "4000", "-2"))
        self.assertEqual(troubles, [])

    def test_watching_and_stopping(self):
        page, troubles = self.start()
        # It starts finished.
        self.assertEqual(page.locator(".panel[data-ratio]").count(), 5)
        self.assertEqual(page.evaluate("program.workers.some((one) => one.job)"), False)
        page.get_by_role("button", name="Train", exact=True).click()
        band = page.evaluate("figure.panels[2].band.std")
        page.wait_for_function("(old) => figure.panels[2].band.std.some((v, i) => v !== old[i])", arg=band)
        page.locator("#panel-mfvi .ratio output", has_text="≈").wait_for()  # a preview
        page.wait_for_function("figure.panels[2].progress.value > 0.05")
        page.get_by_role("button", name="Stop").click()
        page.wait_for_function("program.workers.every((one) => !one.job) && program.waiting.length === 0")
        self.assertEqual(page.locator(".panel:visible .status").all_text_contents(), ["Stopped"] * 5)
        # Now points can be moved without training, until it is asked for.
        page.get_by_role("button", name="Add a point").click()
        page.get_by_label("Deep ensemble", exact=True).uncheck()
        page.wait_for_timeout(1000)
        self.assertEqual(page.evaluate("program.workers.some((one) => one.job)"), False)
        page.get_by_role("button", name="Train", exact=True).click()
        page.wait_for_function("figure.panels[2].running && !figure.panels[2].stale")
        self.assertFalse(page.locator("#panel-ensemble").is_visible())
        self.assertEqual(page.evaluate("figure.panels[5].running"), False)
        self.assertEqual(troubles, [])

    def test_what_cannot_be_trained(self):
        page, _ = self.start()
        page.evaluate("figure.points.set([{x: 1, y: 1}, {x: 1, y: 2}])")
        page.locator("#panel-density .wrong", has_text="all points have the input 1; move one to the side").wait_for()
        page.locator("#panel-ensemble .wrong").wait_for()
        page.get_by_role("button", name="Undo").click()
        page.wait_for_function("!figure.panels[0].stale")

    def test_presets_and_address(self):
        """A preset shows its own curves at once, and the address brings back what was made."""
        page, troubles = self.start()
        for preset, count in (("side", 47), ("thin", 106), ("outlier", 101)):
            page.locator("#preset").select_option(preset)
            page.wait_for_function(f"figure.points.list.length === {count} && !figure.panels[0].stale")
            self.assertEqual(page.locator(".panel[data-ratio]").count(), 5)
        page.get_by_label("Deep ensemble", exact=True).uncheck()
        page.locator("#seed").fill("3")
        page.keyboard.press("Tab")
        page.wait_for_function("figure.points.list[0].x !== STORED.outlier.points.x[0]")
        page.get_by_role("button", name="Stop").click()
        page.evaluate("figure.points.set([{x: -1, y: 1}, {x: 1, y: 2.5}])")
        page.locator("#steps").fill("200")
        page.wait_for_function("location.hash.includes('steps=200')")
        page.locator("#lesson", has_text="your points").wait_for()
        again, _ = self.start(page.url.replace("live.html", "live.html?present"), width={"width": 1280, "height": 720})
        self.assertEqual(again.evaluate("figure.points.list.map(({x, y}) => [x, y])"), [[-1, 1], [1, 2.5]])
        request = again.evaluate("figure.request('mfvi')")
        self.assertEqual((request["seed"], request["steps"], again.locator("#preset").input_value()), (3, 200, "outlier"))
        self.assertFalse(again.locator("#panel-ensemble").is_visible())
        self.assertLessEqual(again.evaluate("document.documentElement.scrollHeight"), 720)
        self.assertEqual(troubles, [])

    def test_two_moons(self):
        """They start finished, a point keeps its class where it is moved to, and they are trained as by Go on this machine."""
        page, troubles = self.start()
        page.locator("#preset").select_option("moons")
        page.wait_for_function("figure.points.list.length === 500 && document.querySelectorAll('.panel[data-ratio]').length === 5")
        self.assertEqual(page.locator("#steps").input_value(), "1000")
        for method in ("rank1", "mcdropout", "ensemble"):
            page.locator(f"#show-{method}").uncheck()
        page.evaluate("figure.points.add({x: 3, y: 3})")
        page.evaluate("figure.points.move(500, {x: 2.9, y: 3})")
        for name, value in (("steps", 200), ("pretraining", 100), ("width", 10)):
            page.locator(f"#{name}").fill(str(value))
        page.wait_for_function("figure.panels[2].running && figure.panels[2].band.far && figure.panels[2].progress.value < 1")
        page.wait_for_function("document.querySelectorAll('.panel[data-ratio]:not([hidden])').length === 2", timeout=300000)
        for method in ("density", "mfvi"):
            request = page.evaluate(f"figure.request('{method}')")
            self.assertEqual((len(request["labels"]), request["labels"][500]), (501, request["labels"][page.evaluate("STORED.moons.points.x.indexOf(Math.max(...STORED.moons.points.x))")]))
            self.assert_close(float(page.locator(f"#panel-{method}").get_attribute("data-ratio")), self.native({"train": request})["map"]["far"])
        again, _ = self.start(page.url.replace("live.html", "live.html?present"), width={"width": 1280, "height": 720})
        self.assertEqual(again.evaluate("figure.points.list[500]"), page.evaluate("figure.points.list[500]"))
        for method in ("rank1", "mcdropout", "ensemble"):
            again.evaluate(f"document.querySelector('#show-{method}').click()")
        panels = [again.locator(f"#panel-{method}").bounding_box() for method in ("density", "ensemble")]
        self.assertLess(panels[0]["y"], 80)
        self.assertTrue(640 < panels[1]["y"] + panels[1]["height"] <= 720, panels)
        page.locator("#preset").select_option("gap")
        page.wait_for_function("figure.points.list.length === 100 && figure.panels[0].band.gaps")
        self.assertEqual((page.locator("#steps").input_value(), troubles), ("4000", []))

    def test_layer(self):
        page, troubles = self.start()
        page.get_by_role("tab", name="Figure 1, hands-on").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("layer.map && !layer.running")
        before = page.evaluate("layer.map.precision")
        page.locator("#map").focus()
        page.keyboard.press("PageDown")
        page.keyboard.press("Shift+ArrowUp")
        page.locator("#gamma").fill("0.5")
        page.wait_for_function("(old) => !layer.running && layer.map.precision[0] !== old[0]", arg=before)
        found, want = page.evaluate("layer.map"), self.native({"layer": page.evaluate("layer.request()")})
        for name in ("precision", "std"):
            self.assertEqual(len(found[name]), len(want[name]))
            for got, wanted in zip(found[name], want[name]):
                self.assert_close(got, wanted)
        page.locator("#map canvas").hover(position={"x": 200, "y": 100})
        page.locator("#probe", has_text="energy").wait_for()
        self.assertEqual(troubles, [])

    def test_on_a_phone(self):
        page, _ = self.start(width=PHONE)
        canvas = page.locator("#panel-density canvas")
        canvas.scroll_into_view_if_needed()
        canvas.tap(position={"x": 150, "y": 40})
        self.assertEqual(page.evaluate("figure.points.list.length"), 101)
        self.assertTrue(page.get_by_role("button", name="Remove the point").first.is_enabled())

    def test_without_webassembly(self):
        page, troubles = self.open()
        page.add_init_script("delete globalThis.WebAssembly")
        page.goto((MADE / "html" / "live.html").as_uri())
        page.get_by_role("alert").get_by_text("cannot run WebAssembly").wait_for()
        self.assertFalse(page.locator("main").is_visible())
        self.assertEqual(troubles, [])

    def test_from_a_static_server(self):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=MADE / "html"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        here = f"http://127.0.0.1:{server.server_port}/"
        _, troubles = self.start(here + "live.html")
        self.assertEqual([trouble for trouble in troubles if not trouble.startswith(f"from elsewhere: {here}")], [])

    def test_accessibility(self):
        for scheme in ("light", "dark"):
            page, _ = self.start(scheme=scheme)
            for tab in ("Figure 1, hands-on", "The layer itself"):
                with self.subTest(scheme=scheme, tab=tab):
                    page.get_by_role("tab", name=tab).click()
                    self.assert_accessible(page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
