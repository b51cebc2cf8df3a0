#!/usr/bin/env bash
# Expected: Wasserstein.DistNormal of gonum's stat/distmv, "the Wasserstein distance between normal distributions", is the square root
#   of the mean squared distance, as the type's definition says: W(l, r) = inf E(||X - Y||^2)^(1/2).
# Seen: it is the square of this: between N(0, 1) and N(3, 1) 9 instead of 3, and between N(0, 1) and N(0.1, 1) 0.01 instead of 0.1. The
#   formula in the function's comment begins with "d^2 =", and the right side is what it returns. Hellinger in the same file takes the
#   root, and stat.WassersteinDistance of the same module, of samples and by absolute differences, has 3 and 0.1.
# Why it matters: it has the unit of x squared: distributions farther than 1 look farther, and nearer ones nearer. From N(0, 1) to N(1, 1)
#   it is 1, and to N(2, 1) 4, so it is no metric, which a search tree for neighbours needs.
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

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"
	"gonum.org/v1/gonum/stat/distuv"
)

// by returns the distance of gonum between two normal distributions.
func by(a, b distuv.Normal) float64 {
	normal := func(d distuv.Normal) *distmv.Normal {
		n, _ := distmv.NewNormal([]float64{d.Mu}, mat.NewSymDense(1, []float64{d.Sigma * d.Sigma}), nil)
		return n
	}
	return distmv.Wasserstein{}.DistNormal(normal(a), normal(b))
}

func main() {
	const n = 1000
	for _, b := range []distuv.Normal{{Mu: 1, Sigma: 1}, {Mu: 2, Sigma: 1}, {Mu: 3, Sigma: 1}, {Mu: 0.1, Sigma: 1}, {Mu: 3, Sigma: 2}} {
		a := distuv.UnitNormal
		x, y, square := make([]float64, n), make([]float64, n), 0.0
		for i := range x {
			p := (float64(i) + 0.5) / n
			x[i], y[i] = a.Quantile(p), b.Quantile(p) // in one dimension the best plan moves quantile to quantile
			square += (x[i] - y[i]) * (x[i] - y[i]) / n
		}
		d := by(a, b)
		fmt.Printf("N(0, 1) to N(%g, %g): distmv %.3f, from the quantiles %.3f", b.Mu, b.Sigma*b.Sigma, d, math.Sqrt(square))
		fmt.Printf(", stat between 1000 quantiles %.3f\n", stat.WassersteinDistance(x, y, nil, nil))
		if math.Abs(d/square-1) > 0.01 || math.Abs(d-math.Sqrt(square)) < 0.01 != (b.Mu == 1) {
			log.Fatal("changed")
		}
	}
}
GO
go run .
