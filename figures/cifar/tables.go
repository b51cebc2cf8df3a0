package cifar

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	papers "densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

//go:embed prose.md
var proseText string

var prose = report.ParseProse(proseText)

// Exhibits are the tables and pictures of the image study.
func Exhibits() tables.Exhibits {
	var all tables.Exhibits
	for _, c := range classifications {
		all = append(all, tables.Exhibit{Name: c.name, Doc: c.what + ", ours and the paper's", Table: c.table})
	}
	return append(all,
		tables.Exhibit{Name: "ood-svhn", Doc: "out-of-distribution detection with ResNet-14, ours and the paper's", Table: detectionTable},
		tables.Exhibit{Name: "paper-images", Doc: "all runs of these tables: ResNet-14 and then WRN-28-10, for each a seed of CIFAR-10, of CIFAR-100, and then the next seed", Needs: paperImages},
		tables.Exhibit{Name: "cifar-processor-grid", Doc: "the option of each method that was chosen on held-out images for the table cifar-processor", Table: processorsGrid},
		tables.Exhibit{Name: "cifar-fidelities", Doc: "density uncertainty by the paper's text and by the authors' code: what differs", Table: fidelitiesTable},
		tables.Exhibit{Name: "cifar-bound", Doc: "how much noise the paper's settings can end at, and what as much noise does to a trained network", Table: boundTable, Picture: boundFigure},
		tables.Exhibit{Name: "cifar-processor", Doc: "methods with ResNet-14 after 10 epochs, compared with each other", Table: processorTable, Needs: processorRuns},
		tables.Exhibit{Name: "cifar-processor-differences", Doc: "every method against density uncertainty, image by image after 10 epochs", Table: processorDifferences, Picture: tables.Picture(prose, report.Forest{ByColumn: true}, processorDifferences), Needs: processorRuns},
		tables.Exhibit{Name: "cifar-processor-temperature", Doc: "the same after 10 epochs, with a temperature for every method", Table: processorTemperatures, Needs: processorRuns},
		tables.Exhibit{Name: "cifar-processor-ood", Doc: "out-of-distribution detection after 10 epochs by every score: areas under the ROC and the precision-recall curves", Table: detection("-ood", "auroc"), Needs: processorRuns,
			Picture: tables.Picture(prose, report.Forest{Axis: "area under the ROC curve", Numbers: true, Line: new(0.5)}, detection("-ood", "auroc")),
			Parts:   tables.Exhibits{{Name: "cifar-processor-ood-auprc", Table: detection("-ood-auprc", "auprc"), Needs: processorRuns}}},
		tables.Exhibit{Name: "cifar-processor-layers", Doc: "out-of-distribution detection after 10 epochs by the energies of each layer", Table: processorLayers, Needs: processorRuns})
}

// A row is a line of a table: experiments that differ in their seeds alone, or numbers of the paper.
type row struct {
	group, name string
	runs        experiment.Experiments
	found       []experiment.Result // of these experiments, without those that diverged; only in comparisons
	images      Images              // that it was trained on
	ending      string              // of the names of its metrics, such as ByEnergy
	other       string              // the images out of distribution
	option      string              // what was chosen for it
	reference   bool                // others are compared with it
	made        bool                // it is an ensemble made of the runs of single networks
	// The paper's table, and in it the name of the row and what the names of columns begin with; "" if the paper lacks it.
	table, paper, prefix string
}

// A column is what a table shows of every row.
type column struct {
	title string
	cell  func(r row) tables.Cell
}

// The numbers that several tables have.
var (
	accuracy = tables.Number{Name: experiment.MetricAccuracy, Title: "Accuracy (%)", Percent: true, Decimals: 2, Higher: true}
	ece      = tables.Number{Name: experiment.MetricECE, Title: "ECE", Decimals: 4}
	nll      = tables.Number{Name: experiment.MetricNLL, Title: "NLL", Decimals: 4}
	brier    = tables.Number{Name: "brier", Title: "Brier", Decimals: 4}
	aurc     = tables.Number{Name: "aurc", Title: "AURC", Decimals: 4}
)

// detected is an area under a curve for images of a set.
func detected(set, metric, ending string) tables.Number {
	return tables.Number{Name: detectionMetric(set, metric) + ending, Decimals: 3, Higher: true, Optional: true}
}

// plain is a column with a number, and ranked the same with the best of a group bold.
func plain(n tables.Number) column {
	return column{n.Title, func(r row) tables.Cell { return r.cell(n, "", "") }}
}

func ranked(n tables.Number) column {
	return column{n.Title, func(r row) tables.Cell { return r.cell(n, n.Name, strings.TrimSuffix(n.Title, " (%)")) }}
}

// fill adds columns and rows to a table.
func fill(x *tables.Index, t report.Table, columns []column, rows []row) (report.Table, error) {
	s := tables.Sheet{Table: t, Down: true}
	if len(s.Columns) == 0 {
		s.Columns = []string{"Method"}
	}
	for _, c := range columns {
		s.Columns = append(s.Columns, c.title)
	}
	for _, r := range rows {
		var cells []tables.Cell
		for _, c := range columns {
			cells = append(cells, c.cell(r))
		}
		s.Add(r.group, r.name, cells...)
	}
	return s.Make(x)
}

// cell is the cell of a number, the best of those with its rank bold, beside the paper's number if it has the row and a column
// that is published under a name. Without experiments it is that number alone. Runs of which none has an optional metric have a
// dash.
func (r row) cell(n tables.Number, rank, published string) tables.Cell {
	p := tables.Printed{Mean: n.Over(r.runs)}
	if p.Best = rank; n.Optional && len(r.found) > 0 && !r.has(n.Name) {
		return tables.Words("")
	}
	theirs, has := papers.Lookup(r.table, r.paper, r.prefix+published)
	switch {
	case has && theirs.Note != "" && len(r.runs) == 0:
		return tables.Words("%s", theirs.Note)
	case has:
		p.Paper = &theirs.Value
	case len(r.runs) == 0:
		return p.Theirs()
	}
	return p
}

// papersRows are the rows of one of the paper's tables, as a group; prefix begins the names of the columns.
func papersRows(table, group, prefix string) []row {
	var rows []row
	for _, c := range papers.Table(table) {
		if len(rows) == 0 || rows[len(rows)-1].paper != c.Row {
			rows = append(rows, row{group: group, name: c.Row, table: table, paper: c.Row, prefix: prefix})
		}
	}
	return rows
}

// paperName is what one of the paper's tables calls a method.
func paperName(m experiment.Method, table string) string {
	if _, has := papers.Lookup(table, "Full-rank LDL", "NLL"); has && m.Equal(methods.Density) {
		return "Full-rank LDL"
	}
	switch m.Key {
	case "mcdropout":
		return "MCDropout"
	case "vdropout":
		return "VDropout"
	}
	return m.Name
}

// A classification is one of the paper's tables of classification, with rows of our own.
type classification struct {
	name      string
	published string // of package paper
	what      string // which data with which network
	images    Images
	settings  settings
	methods   []experiment.Method
	decayed   []experiment.Method // again, with weight decay on all parameters
}

// classifications are the five of the paper, one without larger test sets, and two with the settings of the authors' code, whose
// ResNet-14 has 20 layers.
var classifications = []classification{
	{"cifar10-resnet14", papers.CIFAR10ResNet14, "CIFAR-10 with ResNet-14", ten, paper, smallMethods, variationals},
	{"cifar10-resnet14-alone", papers.CIFAR10ResNet14, "CIFAR-10 with ResNet-14, without the test sets of CIFAR-100 and SVHN", tenAlone, paper, smallMethods, variationals},
	{"cifar100-resnet14", papers.CIFAR100ResNet14, "CIFAR-100 with ResNet-14", hundred, paper, smallMethods, variationals},
	{"cifar10-wrn", papers.CIFAR10WRN28, "CIFAR-10 with WRN-28-10", ten, onWide, wideMethods, nil},
	{"cifar100-wrn", papers.CIFAR100WRN28, "CIFAR-100 with WRN-28-10", hundred, onWide, wideMethods, nil},
	{"rank1-ablation", papers.Rank1Ablation, "CIFAR-10 with WRN-28-10 and fewer components", ten, onWide, append(mixtures(), methods.Density), nil},
	{"cifar10-released", papers.CIFAR10ResNet14, "CIFAR-10 with the settings of the authors' code", ten, released, papersFive, nil},
	{"cifar100-released", papers.CIFAR100ResNet14, "CIFAR-100 with the settings of the authors' code", hundred, released, papersFive, nil},
}

// said is what is said of settings.
type said struct {
	Released        bool
	Epochs, Samples int
}

func (s settings) said() said { return said{s.released, s.epochs, s.samples} }

// table has our numbers, and the paper's below them.
func (t classification) table(x *tables.Index) (report.Table, error) {
	var rows []row
	add := func(m experiment.Method, ending string, decayAll bool) {
		r := row{name: m.Name, runs: seeded(t.settings.withDecay(decayAll), paperSeeds).Of(t.images, m), table: t.published, paper: paperName(m, t.published)}
		r.name += ending
		rows = append(rows, r)
	}
	for _, m := range t.methods {
		add(m, "", false)
	}
	for _, m := range t.decayed {
		add(m, ", decay=all", true)
	}
	made := prose.Table("classification", struct {
		said
		What                        string
		Ensembles, Processes, Decay bool
		Members                     int
	}{
		t.settings.said(), t.what, slices.ContainsFunc(t.methods, methods.Ensemble.Equal), slices.ContainsFunc(t.methods, methods.SNGP.Equal), t.decayed != nil, methods.Ensemble.Members,
	})
	made.Name, made.Legend = t.name, report.LegendPaper
	return fill(x, made, []column{ranked(accuracy), ranked(ece), ranked(nll)}, append(rows, papersRows(t.published, "The paper's numbers", "")...))
}

// detectionTable is the paper's table of out-of-distribution detection, ours and the paper's, with columns of our own for
// sets that the paper does not use. Every method is scored by the maximum probability and by a score of its own.
func detectionTable(x *tables.Index) (report.Table, error) {
	var rows []row
	for _, d := range []Images{ten, hundred} {
		prefix := titleOf(d.Name) + "->SVHN "
		for _, m := range smallMethods {
			own := ownScore(seeded(Paper, 1).Of(d, m)[0])
			for _, by := range slices.Compact([]string{own, byMaxProbability}) {
				r := row{group: titleOf(d.Name), name: m.Name + ", " + scoreTitle(by), images: d, ending: by, table: papers.OODSVHN, prefix: prefix}
				trained := d
				if by == ByEnergy {
					trained = withHeldOut(d) // the statistic's reference
				}
				if by == ByEnergy || own != ByEnergy && by == byMaxProbability {
					r.paper = paperName(m, papers.OODSVHN)
				}
				r.runs = seeded(Paper, paperSeeds).Of(trained, m)
				r.found, _ = found(x, r.runs)
				rows = append(rows, r)
			}
		}
		rows = append(rows, papersRows(papers.OODSVHN, titleOf(d.Name)+", the paper's numbers", prefix)...)
	}
	of := func(heading, published, metric string, other func(d Images) string) column {
		return column{heading, func(r row) tables.Cell { return r.cell(detected(other(r.images), metric, r.ending), "", published) }}
	}
	svhn := func(Images) string { return SVHN }
	t := prose.Table("ood-svhn", paper.said())
	t.Legend = report.LegendPaper
	return fill(x, t, []column{
		of("SVHN AUPRC", "AUPRC", "auprc", svhn), of("SVHN AUROC", "AUROC", "auroc", svhn), of("Other CIFAR AUROC", "", "auroc", Images.other),
		of("SVHN (1,083) AUROC", "", "auroc", func(Images) string { return SVHNExcerpt }),
	}, rows)
}

// fidelitiesTable lists in what the authors' code differs from the paper's text, for density uncertainty.
func fidelitiesTable(*tables.Index) (report.Table, error) {
	return tables.AddDifferences(prose.Table("cifar-fidelities", nil), seeded(Paper, 1).Of(ten, methods.Density)[0], seeded(Released, 1).Of(ten, methods.Density)[0])
}

// titleOf is the name of a set of images in tables; unknown ones keep theirs.
func titleOf(name string) string {
	switch name {
	case CIFAR10:
		return "CIFAR-10"
	case CIFAR100:
		return "CIFAR-100"
	case SVHN:
		return "SVHN"
	case SVHNExcerpt:
		return "SVHN (1,083)"
	}
	return name
}

// grouped is a whole number with its thousands set apart: 175,178.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

var (
	// papersFive are the methods of the paper's ResNet-14 tables.
	papersFive = []experiment.Method{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density}
	// variationals are the methods whose posterior leaves its start only if weight decay also applies to variational
	// parameters. The paper does not mention this.
	variationals = []experiment.Method{methods.MFVI, methods.Rank1, methods.Density}
	// singleNetworks and processes are what the paper's ResNet-14 tables leave out.
	singleNetworks = []experiment.Method{methods.Deterministic, methods.Ensemble}
	processes      = []experiment.Method{methods.SNGP, methods.DUE}
	addedMethods   = slices.Concat(singleNetworks, processes)
	// Our tables of ResNet-14 have smallMethods, and the tables of the Wide ResNet have wideMethods.
	smallMethods = slices.Concat(papersFive, addedMethods)
	wideMethods  = slices.Concat(papersFive, []experiment.Method{mixture(0.0125)}, processes, singleNetworks)
	// keyMethods are compared with each other in the first place: without noise, with noise whose energy knows nothing of the
	// input, and the strongest of the paper's other methods.
	keyMethods = []experiment.Method{methods.Deterministic, methods.Density, methods.DensityConstant, methods.Rank1}
)

// paperSeeds is the number of seeds of the paper's tables.
const paperSeeds = 3

// mostSeeds is the largest number of seeds of a comparison.
var mostSeeds = methods.Ensemble.Members

// tenAlone needs only the files of CIFAR-10 and the excerpt of SVHN.
var ten, hundred, tenAlone = Images{Name: CIFAR10}, Images{Name: CIFAR100}, Images{Name: CIFAR10, Sets: []string{TestSet, SVHNExcerpt}}

// withHeldOut keeps 5,000 images out of training.
func withHeldOut(d Images) Images {
	d.HeldOut = heldOut
	return d
}

// seeded are experiments by a preset, with so many seeds.
func seeded(preset experiment.Preset, seeds int) experiment.Grid {
	return experiment.Grid{Preset: preset, Seeds: seeds}
}

// ablationFractions are the numbers of mixture components of the paper's ablation, as parts of the layers' width.
var ablationFractions = []float64{0.0125, 0.025, 0.05, 0.1, 0.2}

// mixture is the rank-1 mixture with a number of components, under the name in the paper.
func mixture(fraction float64) experiment.Method {
	return experiment.Method{Name: fmt.Sprintf("Rank-1 Mixture (%g%%)", 100*fraction), Layers: dul.Density{Energy: energy.Rank1Mixture{Fraction: fraction}}}
}

// mixtures are the mixtures of the paper's ablation.
func mixtures() []experiment.Method {
	var all []experiment.Method
	for _, fraction := range ablationFractions {
		all = append(all, mixture(fraction))
	}
	return all
}

// paperImages are the experiments of the paper's six image tables, in an order in which a stopped run leaves whole columns: one
// seed of everything before the next, small networks before wide ones.
func paperImages() experiment.Experiments {
	all := seeded(Wide, paperSeeds).Of(ten, mixtures()...)
	for _, d := range []Images{ten, hundred} {
		all = append(all, slices.Concat(
			seeded(Paper, paperSeeds).Of(d, append(slices.Clone(papersFive), methods.Deterministic)...),
			seeded(paper.withDecay(true), paperSeeds).Of(d, variationals...),
			seeded(Wide, paperSeeds).Of(d, slices.Concat(papersFive, []experiment.Method{mixture(0.0125)}, processes)...),
			seeded(Paper, paperSeeds).Of(withHeldOut(d), methods.Density))...) // for the energies of training images that it has not seen
	}
	all = all.Distinct()
	slices.SortStableFunc(all, func(a, b experiment.Experiment) int {
		return cmp.Or(cmp.Compare(width(a), width(b)), cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Task.Name, b.Task.Name))
	})
	return all
}

// width is the number of filters of the first stage of an experiment's network.
func width(e experiment.Experiment) int { return e.Task.Network.(nets.ResNet).Widths[0] }

// Roofline is the least time in which an H100 trains the experiments of list on images of this package. It was computed
// from the programs that XLA compiled for a training step: the sum over kernels of the longer of moving their bytes, at
// 3.35 TB/s, and their products in TF32, at 494 TFLOP/s. What it leaves out, such as the time between kernels and the
// predictions, was never measured; two or three times as long is to be expected.
func Roofline(list experiment.Experiments) time.Duration {
	total := 0.0
	for _, e := range list {
		d, is := e.Task.Data.(Images)
		if !is || e.Method.Program != nil { // it trains none
			continue
		}
		nanoseconds := [2]float64{6e3, 13e3} // for an image, without noise of activations and with it
		if width(e) > 64 {
			nanoseconds = [2]float64{110e3, 240e3}
		}
		kind := 1
		if slices.ContainsFunc([]experiment.Method{methods.Deterministic, methods.Ensemble, methods.MFVI, methods.MCDropout, methods.VDropout}, e.Method.Equal) {
			kind = 0
		}
		total += nanoseconds[kind] * float64(e.Recipe.Epochs*cmp.Or(d.TrainN, trainingImages-d.HeldOut)*max(1, e.Method.Members))
	}
	return time.Duration(total)
}

// processorRuns are the experiments of the comparison on a processor.
func processorRuns() experiment.Experiments {
	return slices.Concat(
		seeded(Chosen(Processor), 2).Of(ten, keyMethods...),
		seeded(Chosen(Processor), 1).Of(ten, methods.MFVI, methods.MCDropout, methods.VDropout, methods.DensityMixture, methods.DensityDiagonal),
		seeded(Chosen(onProcessor.withDecay(false)), 1).Of(ten, methods.Density),
		seeded(Chosen(Processor), 1).Of(ten, processes...),
		seeded(Chosen(Processor), methods.Ensemble.Members).Of(ten, methods.Deterministic), // the members of the ensemble
		seeded(Chosen(Processor), 1).Of(hundred, keyMethods...))
}

// A Family is a family of layers with the name of its row.
type Family struct {
	Name   string
	Layers nets.ConvLayers
}

// Bytes of a trainable number in float32 during training: the number, its gradient and the optimizer's state. The state is
// one number for SGD with momentum, and two for the Adam of the energy models.
const (
	bytesWithSGD  = 3 * 4
	bytesWithAdam = 4 * 4
)

// Costs is a table of what a network costs with each family of layers, for CIFAR images of so many classes. It has the
// number of parameters, in all and of energy models, the bytes that they take in training without activations, and the
// operations for one image (see nets.ResNet.CostOf) in prediction and in a training step. Nothing is trained. The ratio is
// to the first family's operations.
func Costs(backend compute.Backend, network func(nets.ConvLayers) nets.ResNet, classes int, families ...Family) (report.Table, error) {
	t := prose.Table("costs", classes)
	t.Columns = []string{"Layers", "Parameters", "of energy models", "Training state", "GFLOP, prediction", "GFLOP, training step", "ratio"}
	first := 0.0
	for _, family := range families {
		net := network(family.Layers)
		counts, err := nets.Parameters(backend, net, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, classes)
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: %s: %w", family.Name, err)
		}
		total, generative := 0, counts[params.Generative]
		for _, n := range counts {
			total += n
		}
		bytes := float64(bytesWithSGD*(total-generative) + bytesWithAdam*generative)
		cost := net.CostOf(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, classes)
		if first == 0 {
			first = cost.Training
		}
		t.Rows = append(t.Rows, report.Row{Name: family.Name, Cells: report.TextCells(
			grouped(total), grouped(generative), fmt.Sprintf("%.4g MB", bytes/1e6),
			fmt.Sprintf("%.3g", cost.Forward/1e9), fmt.Sprintf("%.3g", cost.Training/1e9), fmt.Sprintf("%.2f", cost.Training/first),
		)})
	}
	return t, nil
}
