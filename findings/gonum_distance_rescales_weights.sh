#!/usr/bin/env bash
# Expected: stat.WassersteinDistance of gonum reads the values and weights of two samples. That it changes them is said nowhere.
# Seen: it divides the weights of the caller's slices by their sum. Of the values 1, 2, 3 with the counts 3, 4, 3 stat.Variance is 0.667
#   before the distance is measured, and +Inf after it, because it divides by the sum of the counts minus 1. The mean of two samples of
#   10 and 1000 values goes from 4.97 to 3.5: the counts have lost the sizes. For two equal samples the weights stay as they are.
#   WassersteinDistanceND does the same.
# Why it matters: a distance is reported beside variances and means. They depend on the order of the calls, and the mean looks sound.
# Versions: gonum 0.17.0, Go 1.26.8 and 1.27. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOPATH="$work/go" GOCACHE="$work/cache" GOFLAGS="-modcacherw -mod=mod" GOTOOLCHAIN=auto GOWORK=off
unset GOEXPERIMENT GOMODCACHE
cd "$work"
printf 'module example\n\ngo 1.25\n\nrequire gonum.org/v1/gonum v0.17.0\n' >go.mod
cat >main.go <<'GO'
package main

import (
	"fmt"
	"log"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

func main() {
	x, y := []float64{1, 2, 3}, []float64{4, 5, 6}
	for _, dimensions := range []string{"", "ND"} {
		few, many := []float64{3, 4, 3}, []float64{300, 400, 300}
		report := func(when string, wantVariance, wantMean float64) {
			variance := stat.Variance(x, few)
			mean := stat.Mean(slices.Concat(x, y), slices.Concat(few, many))
			fmt.Printf("%s: weights %.1f and %.1f, variance of the first %.3f, mean of both %.3f\n", when, few, many, variance, mean)
			if variance != wantVariance && math.Abs(variance-wantVariance) > 1e-3 || math.Abs(mean-wantMean) > 1e-3 {
				log.Fatal("changed")
			}
		}
		report("before", 0.6667, 4.9703)
		d := 0.0
		if dimensions == "" {
			d = stat.WassersteinDistance(x, y, few, many)
		} else {
			var err error
			if d, err = stat.WassersteinDistanceND(mat.NewDense(3, 1, x), mat.NewDense(3, 1, y), few, many, 1e-9); err != nil {
				log.Fatal(err)
			}
		}
		report(fmt.Sprintf("after WassersteinDistance%s, which is %.3f", dimensions, d), math.Inf(1), 3.5)
	}
	same := []float64{3, 4, 3}
	stat.WassersteinDistance(x, x, same, slices.Clone(same))
	fmt.Println("after the distance of equal samples: weights", same)
	if same[0] != 3 {
		log.Fatal("changed")
	}
}
GO
go run .
