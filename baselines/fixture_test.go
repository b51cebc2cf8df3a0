package baselines_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
)

// recorded is a family's layer at the parameters of a recorded one. paths gives
// the path of each recorded parameter; "bias" is the recorded name of the bias.
func recorded(t *testing.T, c fixtures.Case, layers family, bias string, paths map[string]string, noise ...fixtures.Array) fixtures.Layer {
	t.Helper()
	paths[bias] = "/layer/bias"
	out := c.Array("out").Dims
	apply := func(s *model.Scope, x *graph.Node) *graph.Node { return layers.Dense(s.In("layer"), x, out[1]) }
	if len(out) == 4 {
		spec := conv.Spec{
			Filters: out[0], NoBias: !c.Has("p_" + bias),
			Window: fixtures.ByName(t, c, map[string]conv.Window{"_k3s1p1": conv.Same(3, 1), "_k3s2p1": conv.Same(3, 2)}),
		}
		if spec.NoBias {
			delete(paths, bias)
		}
		apply = func(s *model.Scope, x *graph.Node) *graph.Node { return layers.Conv(s.In("layer"), x, spec) }
	}
	return fixtures.Layer{Apply: apply, Paths: paths, Noise: noise}
}

// eachRecorded runs test for the recorded cases of all patterns.
func eachRecorded(t *testing.T, patterns []string, test func(t *testing.T, c fixtures.Case)) {
	for _, pattern := range patterns {
		fixtures.Each(t, pattern, test)
	}
}

// isConv says whether a case is one of images.
func isConv(c fixtures.Case) bool { return strings.Contains(c.Name, "_conv_") }

// draws is a recorded draw of noise for each entry of a layer's output or input.
func draws(c fixtures.Case, name string) fixtures.Array {
	if isConv(c) {
		return c.Array(name).Channels()
	}
	return c.Array(name)
}

func TestMCDropoutMatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"mcdropout_linear_*", "mcdropout_conv_*"}, func(t *testing.T, c fixtures.Case) {
		bias := "linear__bias"
		paths := map[string]string{"linear__weight": "/layer/weights"}
		if isConv(c) {
			bias, paths = "conv__bias", map[string]string{"conv__weight": "/layer/weights"}
		}
		// Recorded as 0 or 1; the mask that is drawn is scaled.
		c.CheckLayer(t, "", recorded(t, c, baselines.MCDropout{Rate: 0.3}, bias, paths, draws(c, "mask").Scale(1/0.7)))
	})
}

func TestMFVIMatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"bayesian_linear_*", "bayesian_conv_*"}, func(t *testing.T, c fixtures.Case) {
		layers := baselines.MFVI{PriorStd: c.PriorStd("b_prior_logvar")}
		var eps fixtures.Array
		if isConv(c) {
			eps = c.Kernel("eps")
		} else {
			eps = c.Array("eps").Transposed()
		}
		c.CheckLayer(t, "", recorded(t, c, layers, "bias", map[string]string{
			"weight_mu":     "/layer/weights_mean",
			"weight_logvar": "/layer/weights_log_variance",
		}, eps))
	})
}

func TestRank1MatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"rank1_linear_*", "rank1_conv_k*"}, func(t *testing.T, c fixtures.Case) {
		layers := baselines.Rank1{PriorStd: c.PriorStd("b_r_prior_logvar")}
		kind := "linear"
		if isConv(c) {
			kind = "conv"
		}
		paths := map[string]string{
			"r_mu":            "/layer/input_factor_mean",
			"r_logvar":        "/layer/input_factor_log_variance",
			"s_mu":            "/layer/output_factor_mean",
			"s_logvar":        "/layer/output_factor_log_variance",
			kind + "__weight": "/layer/weights",
		}
		c.CheckLayer(t, "", recorded(t, c, layers, kind+"__bias", paths, draws(c, "eps0"), draws(c, "eps1")))
		if layers.Tied = strings.Contains(c.Name, "tied"); layers.Tied {
			c.CheckLayer(t, "", recorded(t, c, layers, kind+"__bias", paths, firstPixels(c.Array("eps0")), firstPixels(c.Array("eps1"))))
		}
	})
}

func TestVDropoutMatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"vdropout_linear_*", "vdropout_conv_*"}, func(t *testing.T, c fixtures.Case) {
		bias, paths := "linear__bias", map[string]string{"log_alpha": "/layer/log_alpha", "linear__weight": "/layer/weights"}
		if isConv(c) {
			bias, paths = "conv__bias", map[string]string{"log_alpha": "/layer/log_alpha", "conv__weight": "/layer/weights"}
		}
		c.CheckLayer(t, "", recorded(t, c, baselines.VDropout{Adaptive: true}, bias, paths, draws(c, "eps")))
	})
}
