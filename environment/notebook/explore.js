(id, ended) => {
  // The page's side of notebook.Explore. It tells the program where the sliders are, as "number position position ...", the
  // next move when the last one is drawn, and repeats it twice a second, to hear that the program is still there. In the
  // background, where browsers have few timers run, it says "hidden" instead; "end" when the program is to end.
  const pause = 500, patience = 10; // milliseconds, and questions without an answer
  let root, cell, comm, sent = 0, drawn = 0, moved = false, silent = 0;

  const inputs = () => [...root.querySelectorAll("input")];
  const tell = (word) => comm.send(`${id}/moves`, word);
  const place = () => [sent, ...inputs().map((input) => input.value)].join(" ");

  function show(alive) {
    for (const input of inputs()) input.disabled = !alive;
    root.querySelector("[role=status]").textContent = alive ? "Drag, or Tab and the arrow keys. Running another cell ends this one." : ended;
  }

  function move() {
    for (const input of inputs()) {
      const labels = input.dataset.labels.split("\n");
      const text = labels.length > 1 ? labels[input.value] : input.value;
      input.nextElementSibling.textContent = text;
      input.setAttribute("aria-valuetext", text);
    }
    moved = true;
    if (sent > drawn || !comm) return; // until that is drawn
    moved = false;
    sent++;
    tell(place());
  }

  function answer(_, text) {
    if (text === "end") {
      stop();
      return;
    }
    const [number, picture] = text.split(" ");
    if (silent > patience || inputs()[0].disabled) show(true);
    silent = 0;
    drawn = Number(number);
    sent = Math.max(sent, drawn); // of this page before it was shown anew
    if (picture) root.querySelector("img").src = picture;
    if (moved) move();
  }

  function stop() {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", ask);
    show(false);
  }

  // Whether this cell, which has lost its output then, or another one waits to run: those have a star too.
  function waiting() {
    const prompts = cell?.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt") ?? [];
    return (cell && !cell.contains(root)) || [...prompts].filter((prompt) => prompt.textContent.includes("*")).length > 1;
  }

  function ask() {
    if (!root) {
      root = document.getElementById(id);
      if (!root) return; // not on the page yet
      cell = root.closest(".jp-Cell");
      for (const input of inputs()) input.addEventListener("input", move);
      // JupyterLab would take the keys of a slider for its own. It keeps the others.
      root.addEventListener("keydown", (event) => /^(Arrow|Home|End|Page)/.test(event.key) && event.stopPropagation());
    }
    silent++;
    if (silent > patience) show(false);
    if (silent > 20 * patience) stop();
    if (comm !== globalThis.gonb_comm) {
      comm = globalThis.gonb_comm; // GoNB's connection to the kernel, which it may make anew
      comm?.subscribe(`${id}/drawn`, answer);
    }
    if (comm) tell(waiting() ? "end" : document.hidden ? "hidden" : place());
  }

  const timer = setInterval(ask, pause);
  document.addEventListener("visibilitychange", ask);
  ask();
}
