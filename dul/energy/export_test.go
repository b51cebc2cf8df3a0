package energy

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
)

// ConvWith is Conv with k components.
func (m Rank1Mixture) ConvWith(s *model.Scope, x *graph.Node, w conv.Window, k int) ConvTerms {
	return m.conv(s, x, w, k)
}
