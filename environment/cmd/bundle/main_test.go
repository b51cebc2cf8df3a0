package main

import (
	"context"
	"os"
	"strings"
	"testing"
)

// childMark is the environment variable that makes the test binary the program.
const childMark = "BUNDLE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childMark) == "1" {
		main()
	}
	os.Exit(m.Run())
}

func TestWrongUsage(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "want \"make\" or \"unpack\"",
		"pack":                            "want \"make\" or \"unpack\"",
		"unpack":                          "unpack wants one folder",
		"make --out x --dta cifar10":      "flag provided but not defined",
		"make --out x extra":              "unknown argument \"extra\"",
		"make --base x":                   "--out needs a folder",
		"make --out x":                    "--base needs a folder",
		"make --out x --dry-run --data ":  "--data: unknown \"\"",
		"make --out x --data cifar10,mni": "--data: unknown \"mni\", want none or some of cifar10,cifar100,svhn,svhn-excerpt",
		"make --out x --part-size 60":     "--part-size: \"60\" is too small",
		"make --out x --part-size big":    "--part-size: \"big\" is not a size",
		"make --out x --part-size 60mb":   "--part-size: \"60mb\" is not a size",
	} {
		var stdout, stderr strings.Builder
		arguments := strings.Fields(line)
		if strings.HasSuffix(line, " ") {
			arguments = append(arguments, "")
		}
		if strings.Contains(line, "--part-size") || strings.Contains(line, "mni") {
			arguments = append(arguments, "--dry-run")
		}
		status := run(context.Background(), arguments, &stdout, &stderr)
		if status != exitUsage || !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
			t.Errorf("%q: status %d, want 2 and %q\n%s%s", line, status, want, stdout.String(), stderr.String())
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"60MiB": 60 << 20, "2097152": 2 << 20, "2097152B": 2 << 20, "500MB": 500e6, "2000kB": 2e6, "2GiB": 2 << 30} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestSelectSets(t *testing.T) {
	sets, err := selectSets(catalogue, "svhn,cifar10")
	if err != nil || strings.Join(setNames(sets), ",") != "cifar10,svhn" {
		t.Errorf("%v, %v", setNames(sets), err)
	}
	if sets, err = selectSets(catalogue, "none"); err != nil || len(sets) != 0 {
		t.Errorf("none: %v, %v", setNames(sets), err)
	}
}
