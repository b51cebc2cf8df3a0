package metrics

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
)

// JointNLL returns the negative log likelihood of groups of targets under M functions, in nats for each target,
// averaged over the groups g (Osband et al. 2022, "The Neural Testbed"):
//
//	-1/|g| log 1/M sum_m prod_{i in g} N(y_i; mean_m(x_i), variance_m(x_i)) + log targetStd.
//
// A group lists indices of targets, which may repeat. Each sample m must be one function of the input. If samples are
// drawn for each input separately, the true joint likelihood is the product of the marginal ones, and its NLL is the
// mean of MonteCarloNLL over the groups' targets. Groups of one target give MonteCarloNLL too. With few samples the
// result is too high on average, by half the relative variance of the mean likelihood. The other arguments are those of
// MonteCarloNLL.
func JointNLL(target []float64, mean, variance [][]float64, groups [][]int, targetStd float64) float64 {
	checkSamples(target, mean, variance)
	each, logs := make([]float64, len(groups)), make([]float64, len(mean))
	for k, group := range groups {
		clear(logs)
		for _, i := range group {
			for m := range mean {
				logs[m] += logNormal(target[i], mean[m][i], variance[m][i])
			}
		}
		each[k] = (math.Log(float64(len(mean)))-floats.LogSumExp(logs))/float64(len(group)) + math.Log(targetStd)
	}
	return Mean(each)
}

// dyadStream keeps dyads apart from other uses of a seed.
const dyadStream = 0x6479616473

// Dyads returns count groups of size indices below n, n >= 2, by dyadic sampling (Osband et al. 2022): each group draws
// two different indices, and then each of its entries at random from these two. Joint predictions of such groups differ
// from marginal ones even if few of the inputs are close to each other.
func Dyads(n, size, count int, seed uint64) [][]int {
	random := rand.New(rand.NewPCG(seed, dyadStream))
	groups := make([][]int, count)
	for k := range groups {
		anchors := [2]int{random.IntN(n), random.IntN(n - 1)}
		if anchors[1] >= anchors[0] {
			anchors[1]++
		}
		for range size {
			groups[k] = append(groups[k], anchors[random.IntN(2)])
		}
	}
	return groups
}
