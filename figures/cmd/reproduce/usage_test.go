package main

import (
	"strings"
	"testing"
)

// The help of a command fits on a screen.
func TestHelp(t *testing.T) {
	for _, line := range []string{"--help", "list --help", "run -h", "run few --help", "again --help", "table --help", "figure --help"} {
		help := ends(t, exitOK, "Usage: reproduce", "", strings.Fields(line)...)
		if n := strings.Count(help, "\n"); n > 40 {
			t.Errorf("%s: %d lines", line, n)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", `expected one of "list", "run"`},
		{"rnu few", `unexpected argument rnu, did you mean "run"?`},
		{"run", `expected "<name>"`},
		{"run fwe", `unknown table or figure "fwe", want few, slow, lost, curve, other or all`},
		{"run few slow", "unexpected argument slow"},
		{"run few --sotre a", "unknown flag --sotre, did you mean"},
		{"run few --store a --store b", "--store is given twice"},
		{"run few --store=", "--store is empty"},
		{"table nll --out=", "--out is empty"},
		{"table nll --format=", "--format is empty"},
		{"run all --splits=", "--splits is empty, as a variable of a shell that is not set"},
		{"run few --seeds=, --dry-run", "--seeds is empty"},
		{"run few --datasets yacht, --dry-run", "--datasets is empty, as a variable of a shell that is not set, or has two commas in a row or one at an end: \"yacht,\""},
		{"run few --methods denisty", `--methods: few has no experiments of "denisty"; with the other flags there are density, mcdropout`},
		{"run few --datasets yacht,bostn", `--datasets: few has no experiments of "bostn"; with the other flags there are yacht, boston`},
		{"run few --splits 0,2", `--splits: few has no experiments of "2"; with the other flags there are 0, 1`},
		{"run few --epochs 0", "--epochs 0: experiment: Density Uncertainty on yacht"},
		{"run few --epochs many", `--epochs: expected a valid`},
		{"list fwe", `unknown table or figure "fwe"`},
		{"table nl", `unknown table "nl", want few, curve or all`},
		{"table few --format docx", `--format: unknown "docx", want md, latex, csv`},
		{"table few --out a.txt", "--out: a.txt has the ending .txt"},
		{"table all --out a.tex", "--out: a.tex would be one file, and there are several to write"},
		{"table few --out a.tex --format md", "--out: a.tex has the ending of the format latex, and --format is md"},
		{"figure curve --format gif", `--format: unknown "gif"`},
	} {
		t.Run(c.line, func(t *testing.T) { ends(t, exitUsage, "", c.want, strings.Fields(c.line)...) })
	}
	ends(t, exitFailure, "", "the store: stat none: no such file", "table", "few", "--store", "none")
}
