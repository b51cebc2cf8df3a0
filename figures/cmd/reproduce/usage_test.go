package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	for _, c := range []struct{ args, lacks string }{
		{"--help", ""}, {"help", ""}, {"list --help", ""}, {"run -h", "(default -1)"}, {"run figure1 --help", ""}, {"table --help", ""}, {"figure --help", ""},
		{"fill --help", ""}, {"choose --help", "-keep"}, {"options --help", "Flags"}, {"rescore --help", "-keep"}, {"merge --help", "-keep"}, {"task --help", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, stdout, stderr := reproduce(strings.Fields(c.args)...)
			if status != exitOK || !strings.Contains(stdout, "Usage") || stderr != "" || c.lacks != "" && strings.Contains(stdout, c.lacks) {
				t.Errorf("status %d, want 0 without %q\n%s\n%s", status, c.lacks, stdout, stderr)
			}
		})
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "no command"},
		{"rnu figure1", "unknown command"},
		{"run", "run wants one set"},
		{"run figure9", "unknown set"},
		{"run figure1 uci", "run wants one set: figure1"},
		{"run figure1 --sclae quick", "flag provided"},
		{"run cifar10-resnet14 --seeds x", "--seeds"},
		{"run uci --splits 4-0", "--splits"},
		{"run uci --splits 0-1001", "--splits: \"0-1001\" is not a number or a range such as 0-4, of at most 1000"},
		{"run uci --seeds 20240", "--seeds: uci has no such experiment; with the other flags there are 0, "},
		{"run cifar-small --train-n -2", `invalid value "-2" for flag -train-n: want a whole number of at least 0`},
		{"run uci --train-n 3 --epochs 2", "--train-n 3, --epochs 2: experiment: train_n is 3, want none"},
		{"run uci --epochs 0", "--epochs 0: experiment: epochs is 0, want at least 1"},
		{"run uci --splits 25 --dry-run", "--splits: uci has no such experiment; with the other flags there are 0, 1, 2, "},
		{"run uci --datasets protein --splits 7 --dry-run", "--splits: uci has no such experiment; with the other flags there are 0, 1, 2, 3, 4\n"},
		{"run uci --datasets yacht --datasets boston --dry-run", `"boston" for flag -datasets: it is given twice, before as "yacht"`},
		{"run uci --store a --store b --dry-run", `"b" for flag -store: it is given twice, before as "a"`},
		{"run uci --dry-run --dry-run=false", "dry-run: it is given twice"},
		{"run uci --set clip=true --set clip=false --dry-run", "clip is given twice, as true and false"},
		{"run cifar-small --held-out 60000 --dry-run", "--held-out 60000: 5000 images to train on, 60000 held out and 1000 to test on were asked for, of 50000 and 10000 that there are"},
		{"run uci --networks x --dry-run", "--networks is for image runs"},
		{"run cifar-small --set alpha", "is not name=value"},
		{"run cifar-small --set alhpa=1", `there is no option "alhpa"`},
		{"run uci --set alhpa=1", `there is no option "alhpa"`},
		{"run figure1 --set alhpa=1", `there is no option "alhpa"`},
		{"run cifar-small --methods density --set dropout_rate=0.1", "density has no use for the option dropout_rate"},
		{"run cifar-small --methods mfvi --set energy_rate=0.1", "mfvi has no use for the option energy_rate"},
		{"run cifar-small --set learning_rate=0", `option "learning_rate" is "0", want a positive number`},
		{"run uci --set learning_rate=-1", `option "learning_rate" is "-1", want a positive number`},
		{"run uci --set learning_rate=NaN", `option "learning_rate" is "NaN", want a positive number`},
		{"run uci --set learning_rate=Inf", `option "learning_rate" is "Inf", want a positive number`},
		{"run figure1 --set learning_rate=101", `option "learning_rate" is "101", want a positive number of at most 100`},
		{"run cifar-small --methods density --set energy_rate=1e9", `option "energy_rate" is "1e9", want a positive number of at most 100`},
		{"run cifar-small --engine pbs", "--engine: unknown"},
		{"run cifar-small --submit", "--submit is for --engine slurm"},
		{"run cifar-small --partition gpu", "--partition is for --engine slurm"},
		{"run cifar-small --engine slurm --devices 0", "--devices is for --engine here"},
		{"run cifar-small --engine slurm --processes 2", "--processes is for --engine here"},
		{"run uci --processes -1", "--processes is -1"},
		{"run uci --processes 2 --devices 0", "--processes is for the processor and --devices for GPUs"},
		{"run cifar-small --engine slurm --work x", "--work is for --engine here"},
		{"run cifar-small --engine slurm --predictions x", "--predictions is for --engine here"},
		{"run cifar-small --devices 0,,1", `--devices: "" is not the number of a GPU`},
		{"run cifar-small --devices 0,a --dry-run", `--devices: "a" is not the number of a GPU`},
		{"run uci --batch -1", "--batch is -1"},
		{"choose a", "choose wants uci or images"}, {"choose uci a b", "choose wants uci or images"},
		{"export", "export wants the folder of networks"},
		{"options alpha", "options takes one study: toy, uci, images"},
		{"options toy uci", "options takes one study"},
		{"task out", "task wants"},
		{"task out first", "is not the number of"},
		{"list --format xml", `--format: unknown "xml", want text or json`},
		{"merge", "merge wants"},
		{"fill", "fill wants one file"},
		{"rescore cifar-small", "rescore takes no"},
		{"run figure1 --methods denisty", "--methods: unknown"},
		{"run uci --datasets bostn", "--datasets: unknown"},
		{"run uci --scale medium", "--scale: unknown"},
		{"run uci --fidelity text", "--fidelity: unknown"},
		{"run figure1 --datasets boston", "--datasets: figure1 has no such experiment; with the other flags there are toy-cubic\n"},
		{"run figure1 --scale small", "--scale: figure1 has no such experiment; with the other flags there are full, quick\n"},
		{"run figure1 --store=", "the name is empty"},
		{"list --store=", "the name is empty"},
		{"list figure1", "list takes no"},
		{"table uci-nl", "unknown table"},
		{"table", "table wants one table"},
		{"table uci-nll --format docx", `--format: unknown "docx", want md, latex, html, csv`},
		{"figure figure2", "unknown figure"},
		{"figure figure1 uci-nll", "figure wants one figure"},
		{"figure figure1 --format gif", `--format: unknown "gif"`},
		{"figure figure1 --out a.gif", "--out: a.gif has the ending .gif, want .svg, .png, .pdf"},
		{"figure figure1 --out a.png --format svg", "--out: a.png has the ending of the format png, and --format is svg"},
		{"table uci-nll --out a.txt", "--out: a.txt has the ending .txt, want .md, .tex, .html, .csv"},
		{"table uci-nll --out a.tex --format md", "--out: a.tex has the ending of the format latex, and --format is md"},
	} {
		t.Run(c.line, func(t *testing.T) {
			fails(t, exitUsage, c.want, strings.Fields(c.line)...)
			fails(t, exitUsage, "--help", strings.Fields(c.line)...)
		})
	}
}

// What a terminal would obey is written out, wherever it comes from.
func TestControlCharactersInMessages(t *testing.T) {
	const odd, written = "a\x1b[2Jb", `a\x1b[2Jb`
	none := filepath.Join(t.TempDir(), odd)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"command", []string{odd}},
		{"set", []string{"run", odd}},
		{"flag", []string{"run", "uci", "--" + odd}},
		{"method", []string{"run", "uci", "--methods", odd}},
		{"splits", []string{"run", "uci", "--splits", odd}},
		{"option", []string{"run", "uci", "--set", odd + "=1"}},
		{"value", []string{"run", "uci", "--set", "optimizer=" + odd}},
		{"store", []string{"list", "--store", none}},
		{"file to fill", []string{"fill", none}},
		{"folder to merge", []string{"merge", none}},
		{"folder of tasks", []string{"task", none, "0"}},
		{"partition", []string{"run", "cifar-small", "--engine", "slurm", "--partition", odd, "--program", "p", "--slurm-dir", t.TempDir()}},
		{"table", []string{"table", odd}},
		{"format", []string{"figure", "figure1", "--format", odd}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, stderr := reproduce(c.args...)
			if status == exitOK || strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, written) {
				t.Errorf("status %d, want an error with %q\n%q", status, written, stderr)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	if got, want := commandLine([]string{"run", "uci", "--set", "a=1.5,b", "", "it's $x"}), `run uci --set a=1.5,b '' 'it'\''s $x'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
