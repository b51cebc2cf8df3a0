"""Adds to a copy of the notebook kernel's source, GoNB, what this project needs: python patch.py COPY.

The folders beside this file have the files that are added. Each replacement has to fit exactly once, so that another
version of GoNB that has changed there is noticed.
"""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPLACEMENTS = (
    # Advice for errors that everybody meets first.
    ("internal/goexec/errorpublish.go", "newGonbErrors(s, fileToCellIdAndLine, errorMsg, err)", "newGonbErrors(s, fileToCellIdAndLine, explain(errorMsg), err)"),
    # A panic of a cell names the cell's own line, once (cell.go.txt).
    ("internal/goexec/composer.go", '"func main() {\\n\\tflag.Parse()\\n"', '"func main() {\\n\\tflag.Parse(); defer gonbPanicked()\\n"'),
    (
        "internal/goexec/goexec.go",
        "	if err = s.GoModInit(); err != nil {\n		return nil, err\n	}\n",
        "	if err = s.GoModInit(); err != nil {\n		return nil, err\n	}\n	if err = addPanicked(s.TempDir); err != nil {\n		return nil, err\n	}\n",
    ),
    ("internal/goexec/execcode.go", "res := bytes.Join([][]byte{cellText, match}, nil)", "res := bytes.TrimSpace(cellText)"),
    ("internal/goexec/execcode.go", "				if len(annotator.errorLines) > 0 {\n					annotator.state.DisplayErrorLines(msg, annotator.errorLines, exitErr)\n				}\n", ""),
    # Cells of Windows have other line ends, and may begin with a byte order mark.
    ("internal/dispatcher/dispatcher.go", 'lines := strings.Split(code, "\\n")', 'lines := strings.Split(kernel.Plain(code), "\\n")'),
    ("internal/kernel/encoding.go", '	lines = strings.Split(cellContent, "\\n")\n', '	lines = strings.Split(cellContent, "\\n")\n	defer func() { lines = strings.Split(Plain(cellContent), "\\n") }()\n'),
    # Completions do not wait for a language server that is still starting.
    (
        "internal/dispatcher/dispatcher.go",
        "	err = goExec.AutoCompleteOptionsInCell(lines, usedLines, cursorLine, cursorCol, reply)\n	return\n",
        "	if why := goExec.NotYet(); why != `` {\n		var typed int\n"
        "		reply.Matches, reply.Metadata, typed = goexec.Excuse(lines[cursorLine][:cursorCol], why)\n		reply.CursorStart -= typed\n		return\n	}\n"
        "	return goExec.AutoCompleteOptionsInCell(goexec.Selected(lines, cursorLine, cursorCol), usedLines, cursorLine, cursorCol, reply)\n",
    ),
    # The language server loads the workspace as soon as the kernel starts, for a file that no cell writes. It ends when
    # nobody is connected, as after the kernel was killed.
    ("internal/goexec/goplsclient/exec.go", '"-listen", addr)', '"-listen", addr, "-listen.timeout", "30s")'),
    ("internal/goexec/goplsclient/exec.go", "case <-time.After(ConnectTimeout):", "case <-time.After(time.Second / 2):"),
    ("main.go", "	// Orchestrate dispatching of messages.\n", "	go goExec.WarmUp()\n\n	// Orchestrate dispatching of messages.\n"),
    (
        "internal/goexec/inspect.go",
        "// adjustCursorForFunctionIdentifier adjusts",
        "// WarmUp has the language server load the workspace.\nfunc (s *State) WarmUp() {\n	if s.gopls == nil {\n		return\n	}\n	defer close(warm)\n"
        '	client, ctx, file := s.gopls, context.Background(), path.Join(s.TempDir, "panicked.go")\n'
        '	for _, name := range []string{path.Join(s.TempDir, "go.mod"), path.Join(s.TempDir, "go.work"), file} {\n'
        "		if err := client.NotifyDidOpenOrChange(ctx, name); err != nil {\n			klog.Warningf(`warming up: %+v`, err)\n		}\n	}\n"
        "	for range 20 { // a call waits for eight seconds\n		if _, _, err := client.Complete(ctx, file, 0, 0); err == nil {\n			return\n		}\n	}\n}\n\n"
        "// NotYet is why nothing is completed yet, or nothing. A language server that was built since is started.\nfunc (s *State) NotYet() string {\n"
        '	if s.gopls == nil {\n		if _, err := exec.LookPath("gopls"); err != nil {\n			return Missing\n		}\n'
        "		client := goplsclient.New(s.TempDir)\n		if err := client.Start(); err != nil {\n			return Missing\n		}\n"
        "		s.gopls = client\n		go s.WarmUp()\n	}\n	return notWarm()\n}\n\n"
        "// adjustCursorForFunctionIdentifier adjusts",
    ),
    ("internal/goexec/inspect.go", '	"github.com/janpfeifer/gonb/internal/kernel"\n', '	"github.com/janpfeifer/gonb/internal/goexec/goplsclient"\n	"github.com/janpfeifer/gonb/internal/kernel"\n'),
    ("internal/goexec/inspect.go", '	"os"\n', '	"os"\n	"os/exec"\n'),
    # Endless output is cut.
    ("internal/kernel/messages.go", "return &jupyterStreamWriter{stream, msg}", "return limited(&jupyterStreamWriter{stream, msg})"),
    # A kernel that is interrupted while it starts ends without a trace.
    ("main.go", '		klog.Fatalf("Failed to create go executor: %+v", err)\n', '		kernel.StartFailed(k.Interrupted.Load, "create the Go executor", err)\n'),
    ("main.go", '			klog.Fatalf("Failed to initialize go.work: %+v", err)\n', '			_ = goExec.Stop()\n			kernel.StartFailed(k.Interrupted.Load, "initialize go.work", err)\n'),
    # A kernel that is asked to stop twice stops once.
    ("internal/kernel/kernel.go", "	close(k.stop)\n", "	if !firstStop() {\n		return\n	}\n	close(k.stop)\n"),
)


def main(copy):
    for path, old, new in REPLACEMENTS:
        file = copy / path
        text = file.read_text(encoding="utf-8")
        if text.count(old) != 1:
            sys.exit(f"this version of GoNB has {text.count(old)} times in {path}, want 1: {old!r}")
        file.write_text(text.replace(old, new), encoding="utf-8")
    for package in ("goexec", "kernel"):
        for file in (HERE / package).iterdir():
            if not file.name.endswith("_test.go"):
                shutil.copy(file, copy / "internal" / package)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
