package dul

import "fmt"

// String returns the name by which stored results know the value: "paper", "detached" or "attached".
func (g GradientFlow) String() string {
	switch g {
	case PaperGradients:
		return "paper"
	case Detached:
		return "detached"
	case Attached:
		return "attached"
	}
	return fmt.Sprintf("GradientFlow(%d)", int(g))
}
