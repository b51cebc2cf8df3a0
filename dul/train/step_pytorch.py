"""PyTorch's time for what the benchmarks of images measure, in turn with them.

    GOEXPERIMENT=simd go test -c -o train.test ./dul/train
    GOMLX_BACKEND=xla:cpu python dul/train/step_pytorch.py --program ./train.test

Each round times every kind of step once with each of the two, every time in a new
process, so that what else the machine does falls on both; the table has medians
of the rounds and their ratio. Each measurement is told as it ends; one that fails
is "failed" in the table, and the program fails in the end. Stopped by Ctrl-C or
SIGTERM it prints the table of what it has measured. Needs PyTorch, unless it is
told to go without. The networks are those of package
nets, with the density layer as in package dul: per-position Gaussian noise, LDL
energy with zero padding, variance gamma E + beta. PyTorch has it "detached", with
the energy a constant in the likelihood's gradient, as the authors' code has it. With
--sample it is one sample of the outputs for a batch, in the place of a training step.
On a GPU PyTorch's tensors have the faster of two orders in memory.
"""

import argparse
import importlib.metadata
import math
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time

KINDS = ("plain", "density", "detached", "mixture")  # of both benchmarks
IN_PYTORCH = {"plain": "plain", "density": "detached", "detached": "detached"}


def pytorch_step(options):
    """Prints wall time, CPU time and images per second of a step or a sample of PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.benchmark = True  # XLA, too, tries algorithms

    class Noisy(nn.Module):
        """The noise variances gamma and beta of a layer, one of each for a filter."""

        def __init__(self, filters, shape):
            super().__init__()
            self.gamma = nn.Parameter(torch.full((filters, *shape), 2 * math.log(1e-3)))
            self.beta = nn.Parameter(torch.full((filters, *shape), 2 * math.log(1e-3)))

        def add_noise(self, mean, energy):
            variance = self.gamma.exp() * energy.detach() + self.beta.exp()
            # In the order of memory: PyTorch draws other tensors one number at a time.
            last = mean.movedim(1, -1)
            noise = torch.randn(last.shape, device=mean.device, dtype=mean.dtype).movedim(-1, 1)
            return mean + torch.sqrt(variance + 1e-16) * noise

        def kl(self):
            return sum((0.5 * (v.exp() - 1 - v)).sum() for v in (self.gamma, self.beta))

    class DensityConv(Noisy):
        def __init__(self, channels, filters, size, stride, bias):
            super().__init__(filters, (1, 1))
            self.convolve = nn.Conv2d(channels, filters, size, stride, size // 2, bias=bias)
            self.size, self.stride = size, stride
            self.factor = nn.Parameter(torch.zeros(channels, channels, size, size))
            self.log_variance = nn.Parameter(torch.zeros(channels, 1, 1))
            # A channel sees what comes before it: positions in reading order, then channels.
            place = torch.arange(size * size).view(1, 1, size, size) * channels + torch.arange(channels).view(1, -1, 1, 1)
            own = (size * size // 2) * channels + torch.arange(channels).view(-1, 1, 1, 1)
            self.register_buffer("before", (place < own).float())
            self.register_buffer("itself", (place == own).float())

        def forward(self, x):
            residual = functional.conv2d(x.detach(), self.factor * self.before + self.itself, padding=self.size // 2)
            energy = (residual.square() * (0.5 * (-self.log_variance).exp())).sum(1, keepdim=True)
            if self.training:
                self.log_likelihood = -0.5 * self.log_variance.sum() - energy.mean((1, 2, 3))
            if self.size > 1 or self.stride > 1:
                energy = functional.avg_pool2d(energy, self.size, self.stride, self.size // 2)
            return self.add_noise(self.convolve(x), energy)

    class DensityDense(Noisy):
        def __init__(self, features, units):
            super().__init__(units, ())
            self.multiply = nn.Linear(features, units)
            self.factor = nn.Parameter(torch.zeros(features, features))
            self.log_variance = nn.Parameter(torch.zeros(features))
            self.register_buffer("identity", torch.eye(features))

        def forward(self, h):
            residual = h.detach() @ (self.factor.tril(-1) + self.identity).T
            energy = 0.5 * (residual.square() / self.log_variance.exp()).sum(-1, keepdim=True)
            if self.training:
                self.log_likelihood = -0.5 * self.log_variance.sum() - energy[:, 0]
            return self.add_noise(self.multiply(h), energy)

    def conv(channels, filters, size, stride=1, bias=False):
        if options.layers == "plain":
            return nn.Conv2d(channels, filters, size, stride, size // 2, bias=bias)
        return DensityConv(channels, filters, size, stride, bias)

    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.norm_1, self.norm_2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(filters)
            self.conv_1, self.conv_2 = conv(channels, filters, 3, stride), conv(filters, filters, 3)
            same = stride == 1 and channels == filters
            self.shortcut = nn.Identity() if same else conv(channels, filters, 1, stride, bias=True)

        def forward(self, x):
            h = self.conv_1(functional.relu(self.norm_1(x)))
            return self.conv_2(functional.relu(self.norm_2(h))) + self.shortcut(x)

    blocks, widths = {"resnet14": (2, (16, 32, 64)), "wrn28x10": (4, (160, 320, 640))}[options.network]

    def prepare(order, compiled):
        """Makes a network in an order of memory, and returns its step."""
        stages, channels = [], 16
        for stage, width in enumerate(widths):
            for i in range(blocks):
                stages.append(Block(channels, width, 2 if stage > 0 and i == 0 else 1))
                channels = width
        output = nn.Linear(channels, 10) if options.layers == "plain" else DensityDense(channels, 10)
        network = nn.Sequential(
            conv(3, 16, 3, bias=True), *stages, nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), output
        ).to(options.device, memory_format=order)
        network.train(not options.sample)
        noisy = [m for m in network.modules() if isinstance(m, Noisy)]
        images = torch.randn(options.batch, 3, 32, 32, device=options.device).contiguous(memory_format=order)
        labels = torch.randint(0, 10, (options.batch,), device=options.device)

        def loss():
            with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bfloat16"):
                logits = network(images)
            objective = functional.cross_entropy(logits.float(), labels)
            for layer in noisy:
                objective = objective + layer.kl() / 50_000 - layer.log_likelihood.mean()
            return objective

        if compiled:
            loss = torch.compile(loss)
        omega = [p for name, p in network.named_parameters() if name.endswith(("factor", "log_variance"))]
        others = [p for name, p in network.named_parameters() if not name.endswith(("factor", "log_variance"))]
        optimizers = [torch.optim.SGD(others, lr=1e-3, momentum=0.9, weight_decay=1e-4)]
        if omega:
            optimizers.append(torch.optim.Adam(omega, lr=1e-3, weight_decay=1e-5))

        @torch.inference_mode()
        def sample():
            with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bfloat16"):
                functional.softmax(network(images), 1).cpu()

        def step():
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss().backward()
            for optimizer in optimizers:
                optimizer.step()

        return sample if options.sample else step

    def clocks():
        if options.device == "cuda":
            torch.cuda.synchronize()
        used = resource.getrusage(resource.RUSAGE_SELF)
        return time.perf_counter(), used.ru_utime + used.ru_stime

    def timed(step, count):
        """Wall and CPU time of a step."""
        for _ in range(3):
            step()
        start = clocks()
        for _ in range(count):
            step()
        return [(end - begin) / count for begin, end in zip(start, clocks())]

    order = torch.channels_last
    if options.device == "cuda":
        tried = {each: timed(prepare(each, False), 5)[0] for each in (torch.channels_last, torch.contiguous_format)}
        order = min(tried, key=tried.get)
        names = {torch.channels_last: "channels last", torch.contiguous_format: "default order"}
        print("PyTorch's tensors: " + ", ".join(f"{names[each]} {wall * 1e3:.2f} ms" for each, wall in tried.items()) + f"; measured: {names[order]}")
    wall, cpu = timed(prepare(order, options.compile), options.count)
    print(f"{cpu * 1e3:.3f} cpu-ms/step {wall * 1e3:.3f} ms/step", flush=True)


class Failed(Exception):
    """A measurement that failed, and why."""


def reason(status, text):
    """The first line of what a command wrote that says why it failed."""
    for line in text.splitlines():
        if re.match(r"panic: |fatal error: |error: |F\d{4} |[\w.]*(Error|Exception)\b|\s+\w+_test\.go:\d+: ", line):
            return line.strip()[:300]
    last = (text.strip().splitlines() or ["it said nothing"])[-1][:300]
    return f"killed by signal {-status}: {last}" if status < 0 else last


def measure(command):
    """Milliseconds of wall and CPU time of a step, as the command prints them, and what it says of PyTorch's tensors."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError as error:
        raise Failed(str(error)) from error
    text = done.stdout
    found = {unit: float(value) for value, unit in re.findall(r"([0-9.e+]+) (ms/step|cpu-ms/step)", text)}
    if done.returncode or len(found) != 2:
        print(text[-4000:], file=sys.stderr, flush=True)
        raise Failed(reason(done.returncode, text) if done.returncode else "it measured nothing")
    return (found["ms/step"], found["cpu-ms/step"]), "".join(re.findall(r"^PyTorch's tensors: .*", text, re.MULTILINE))


def asked(command):
    """What a command writes, or nothing where it does not work."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def about(options):
    """The line that says what is measured on."""
    backend = os.environ.get("GOMLX_BACKEND") or "go:ops_sequential"
    parts = [time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())]
    if options.program:
        parts.append(f"backend {backend}")
    if "cuda" in backend or options.device == "cuda":
        card = asked(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
        parts.append(card.replace(", ", ", driver ").replace("\n", ", ") or "unknown GPU")
    parts.append(f"{os.cpu_count()} processors")
    if not options.without_pytorch:
        try:
            version = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            version = "of unknown version"
        parts.append(f"PyTorch {version} on {options.device} with {options.threads} threads")
    return "; ".join(parts)


def print_table(options, kinds, times, failures, remarks):
    """Prints medians of what was measured."""
    what = "sample" if options.sample else "step"
    print(f"\n{options.network}, batches of {options.batch}, {options.precision}{', compiled' if options.compile else ''}; ms of a {what} and images a second, medians of {options.rounds} rounds at most")
    print(f"{'':10} {'wall':>8} {'CPU':>8} {'images/s':>8} {'PyTorch':>8} {'CPU':>8} {'images/s':>8} {'ratio':>6} {'CPU':>6}")
    for kind in kinds:
        cells, rows = [], {}
        for which in ("Go", "PyTorch"):
            if measured := times.get((kind, which)):
                wall, cpu = rows[which] = [statistics.median(column) for column in zip(*measured)]
                rate = options.batch / wall * 1e3
                cells += [f"{wall:8.2f}", f"{cpu:8.2f}", f"{rate:8.0f}" if rate >= 10 else f"{rate:8.2f}"]
            else:
                cells += [f"{'failed' if (kind, which) in failures else '-':>8}"] * 3
        if len(rows) == 2:
            cells += [f"{a / b:6.2f}" for a, b in zip(rows["Go"], rows["PyTorch"])]
        print(f"{kind:10} " + " ".join(cells))
    for (kind, which), said in remarks.items():
        print(f"{kind}: {said}")
    for (kind, which), why in failures.items():
        print(f"{kind}, {which}, failed: {why}")


def stop(*_):
    sys.exit("stopped by SIGTERM: the table has what was measured until then")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", help="the test program of package train; without it PyTorch alone is measured")
    p.add_argument("--kinds", default="plain,density", help="some of " + ",".join(KINDS) + ", separated by commas")
    p.add_argument("--network", default="resnet14", choices=["resnet14", "wrn28x10"])
    p.add_argument("--batch", type=int, default=128, help="images in a step (128)")
    p.add_argument("--precision", default="float32", choices=["float32", "tf32", "bfloat16"], help="of both; but tf32 of the Go program is in GOMLX_BACKEND")
    p.add_argument("--count", type=int, default=20, help="steps to time in a round (20)")
    p.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="of PyTorch")
    p.add_argument("--threads", type=int, default=2, help="of PyTorch (2)")
    p.add_argument("--compile", action="store_true", help="let torch.compile compile the objective")
    p.add_argument("--without-pytorch", action="store_true", help="measure the Go program alone")
    p.add_argument("--sample", action="store_true", help="samples of the outputs in the place of training steps, in float32 by the Go program")
    p.add_argument("--layers", choices=["plain", "detached"], help=argparse.SUPPRESS)  # measures this one, here
    options = p.parse_args()
    if options.layers:
        return pytorch_step(options)
    kinds = options.kinds.split(",")
    if options.without_pytorch and not options.program:
        p.error("nothing to measure: neither --program nor PyTorch")
    if unknown := set(kinds) - set(KINDS):
        p.error(f"unknown {', '.join(sorted(unknown))}; want some of {', '.join(KINDS)}")

    signal.signal(signal.SIGTERM, stop)
    benchmark = "BenchmarkImageSample" if options.sample else "BenchmarkImageStep"
    commands = {}
    for kind in kinds:
        if options.program:
            commands[kind, "Go"] = [options.program, "-test.run=^$", f"-test.bench=^{benchmark}$/^{kind}$", f"-test.benchtime={options.count}x"]
            commands[kind, "Go"] += [f"-network={options.network}", f"-batch={options.batch}", f"-bfloat16={options.precision == 'bfloat16'}"]
        if kind in IN_PYTORCH and not options.without_pytorch:
            commands[kind, "PyTorch"] = [sys.executable, *sys.argv, "--layers", IN_PYTORCH[kind]]
    times, failures, remarks = {}, {}, {}
    print(about(options), flush=True)
    try:
        for number in range(1, options.rounds + 1):
            for (kind, which), command in commands.items():
                if (kind, which) in failures:
                    continue
                try:
                    (wall, cpu), said = measure(command)
                except Failed as error:
                    failures[kind, which] = str(error)
                    print(f"round {number}, {kind}, {which}: failed: {error}", flush=True)
                    continue
                times.setdefault((kind, which), []).append((wall, cpu))
                if said:
                    remarks[kind, which] = said
                print(f"round {number}, {kind}, {which}: {wall:.2f} ms, CPU {cpu:.2f} ms", flush=True)
    finally:
        print_table(options, kinds, times, failures, remarks)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
