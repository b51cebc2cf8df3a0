package dul

import "fmt"

// String is the name of the choice, which stands for it in kept results.
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
