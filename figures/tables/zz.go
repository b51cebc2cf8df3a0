package tables
import "densityuncertainty/figures/experiment"
func (x *Index) All() map[string]experiment.Result { return x.results }
