package cifar

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// Processor is the protocol at the scale of a processor with two cores, with numbers by which methods can be compared
// with each other, though not with the paper's: 10 epochs of all training images but the 5,000 that are held out, and
// whole test sets. The weight decay is on all parameters, as in the released code, since in so few epochs posteriors
// stay where they start without it.
func (p Protocol) Processor() Protocol {
	p.Scale, p.Seeds, p.Epochs, p.Decay = results.Processor, []uint64{0}, 10, methods.DecayAll
	return p.WithHeldOut()
}

// GPU is Processor at the scale of half an hour on a GPU: 60 epochs, two seeds. No option is searched for it.
func (p Protocol) GPU() Protocol {
	p = p.Processor()
	p.Scale, p.Seeds, p.Epochs = results.GPU, []uint64{0, 1}, 60
	return p
}

// A comparison is a protocol whose runs are compared with each other and not with the paper.
type comparison struct {
	Protocol                // its scale, after "cifar-", is the name of its tables
	Searched, Released bool // whether options are searched for it, and released settings are run, too
}

// comparisons have tables of their own.
var comparisons = []comparison{
	{Protocol: Paper(CIFAR10, ResNet14).Processor(), Searched: true},
	{Protocol: Paper(CIFAR10, ResNet14).GPU(), Released: true},
}

// text is the caption of one of its tables, by the last part of the table's name.
func (c comparison) text(t *report.Table, table string) {
	t.Name = "cifar-" + c.Scale + table
	t.Caption, t.Notes = prose.Text("compared"+table, struct {
		comparison
		JudgedBins, Replicates int
		TestImages             string
	}{c, judgedBins, replicates, grouped(testImages)})
}

// processorGrid is the protocol by whose runs an option of each method is chosen for Processor: 3 epochs of 20,000
// images, measured on the images that Processor holds out too.
func (p Protocol) processorGrid() Protocol {
	p = p.Processor()
	p.Scale, p.Epochs, p.TrainN, p.Samples = results.ProcessorGrid, 3, 20000, 10
	return p
}

// A search is among values of an option of a method.
type search struct {
	method methods.Method
	option string
	values []string
}

// searches are for the option that matters most to a method in a short training, of as many values for every method: how
// much noise it has or, where a Gaussian process is the last layer, how fast that learns.
//
// The standard deviations are of weights, which He's initialisation gives one of 0.06 to 0.12; those of Rank-1 BNN are
// of factors that are 1 in the mean. The least leaves networks without noise to speak of.
//
// With SNGP's length scale of 1 the kernel of two images is next to 0 until the network has brought them close together,
// since 128 normalised numbers are 16 apart where nothing is known of them, and what is learned of one image says
// nothing of others; its authors' code has 20. DUE's whitened process follows slowly too (Protocol.ProcessRate).
var searches = []search{
	{methods.Density, methods.InitStd, []string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.DensityConstant, methods.InitStd, []string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.Rank1, methods.InitStd, []string{"0.001", "0.01", "0.1", "0.3"}},
	{methods.MFVI, methods.InitStd, []string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.MCDropout, methods.DropoutRate, []string{"0.05", "0.1", "0.2", "0.3"}},
	{methods.VDropout, methods.Alpha, []string{"0.03", "0.1", "0.25", "0.5"}},
	{methods.DensityMixture, methods.InitStd, []string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.DensityDiagonal, methods.InitStd, []string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.SNGP, "length_scale", []string{"1", "5", "20", "50"}},
	{methods.DUE, "process_rate", []string{"1", "3", "10", "30"}},
}

// with is a protocol with a value of the option, one of a search.
func (n search) with(p Protocol, value string) Protocol {
	if err := methods.Set(&p, map[string]string{n.option: value}); err != nil {
		panic(fmt.Sprintf("cifar: %s: %v", n.method.Name, err))
	}
	return p
}

// candidate is the experiment of the grid with a value of the option.
func (n search) candidate(value string) results.Experiment {
	return n.with(Paper(CIFAR10, ResNet14).processorGrid(), value).Experiments(n.method)[0]
}

// searchOf is the search for a method, and whether there is one.
func searchOf(method string) (search, bool) {
	i := slices.IndexFunc(searches, func(n search) bool { return n.method.Name == method })
	if i < 0 {
		return search{}, false
	}
	return searches[i], true
}

func processorGridSet() results.Set {
	s := results.Set{
		Name: "processor-grid",
		Doc:  "the noise, length scale or rate of each method for the set processor: four values, 3 epochs of 20,000 images, measured on 5,000 held-out images",
	}
	for _, n := range searches {
		for _, value := range n.values {
			s.Experiments = append(s.Experiments, n.candidate(value))
		}
	}
	return s
}

// processorSet is what can be run with the options that are chosen so far.
func processorSet(c chosen) results.Set {
	s := results.Set{Name: "processor", Doc: "every method with ResNet-14 on all of CIFAR-10 for 10 epochs, and OOD detection, within reach of a processor"}
	add := func(change func(Protocol) Protocol, list ...methods.Method) { c.add(&s, CIFAR10, change, list...) }
	seed := func(seed uint64) func(Protocol) Protocol {
		return func(p Protocol) Protocol {
			p.Seeds = []uint64{seed}
			return p
		}
	}
	add(seed(0), keyMethods...)
	add(seed(1), keyMethods...)
	add(seed(0), methods.MFVI, methods.MCDropout, methods.VDropout, methods.DensityMixture, methods.DensityDiagonal)
	add(func(p Protocol) Protocol {
		p.Decay = methods.DecayWeights
		return p
	}, methods.Density)
	add(seed(0), methods.SNGP, methods.DUE)
	for member := uint64(2); member < methods.EnsembleMembers; member++ { // of the deep ensemble of table cifar-processor-differences
		add(seed(member), methods.Deterministic)
	}
	s.Lacks = c.lacking(methods.All())
	return s
}

// processorSet100 is the same on CIFAR-100 for the methods that matter most, with the options that are chosen on CIFAR-10.
func processorSet100(c chosen) results.Set {
	s := results.Set{Name: "processor-cifar100", Doc: "four methods with ResNet-14 on all of CIFAR-100 for 10 epochs, as in the set processor and with its options"}
	c.add(&s, CIFAR100, func(p Protocol) Protocol { return p }, keyMethods...)
	s.Lacks = c.lacking(keyMethods)
	return s
}

// add adds the experiments of methods on a data set, with the option that is chosen for each; none of a method that has an
// option to choose and no choice.
func (c chosen) add(s *results.Set, dataset string, change func(Protocol) Protocol, list ...methods.Method) {
	for _, m := range list {
		p := change(Paper(dataset, ResNet14).Processor())
		if n, has := searchOf(m.Name); has {
			value, is := c[m.Name]
			if !is {
				continue
			}
			p = n.with(p, value)
		}
		s.Experiments = append(s.Experiments, p.Experiments(m)...)
	}
}

// lacking says the options of which methods are not chosen yet, and what to do; nothing where all are.
func (c chosen) lacking(list methods.List) string {
	var names []string
	for _, n := range searches {
		_, is := c[n.method.Name]
		if _, listed := list.Named(n.method.Name); listed && !is {
			names = append(names, n.method.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the options of %s are not chosen yet: run the set processor-grid, write figures/cifar/chosen.csv with \"reproduce choose images\", and build this program again",
		strings.Join(names, ", "))
}

// keyMethods are compared with each other in the first place: without noise, with noise whose energy knows nothing of the
// input, and the strongest of the paper's other methods.
var keyMethods = methods.List{methods.Deterministic, methods.Density, methods.DensityConstant, methods.Rank1}

// gpuSet has the settings by which the paper's numbers are most likely made, and those of the text.
func gpuSet() results.Set {
	return results.Set{
		Name:        "gpu",
		Doc:         "four methods with ResNet-14 on all of CIFAR-10 for 60 epochs, two seeds, with the text's and the released settings: half an hour on a GPU",
		Experiments: slices.Concat(Paper(CIFAR10, ResNet14).GPU().Experiments(keyMethods...), Released(CIFAR10, ResNet20).GPU().Experiments(keyMethods...)),
	}
}

// chosen are the values of the searched options by the names of the methods; methods whose grid is not done have none.
type chosen map[string]string

// chosenText is what ChosenOptions made of the committed results.
//
//go:embed chosen.csv
var chosenText []byte

// committedChoice decodes the embedded file, a part of the program: a fault in it is a programming error, which
// TestChosenOptions would show.
var committedChoice = sync.OnceValue(func() chosen {
	c, err := decodeChosen(bytes.NewReader(chosenText))
	if err != nil {
		panic(err)
	}
	return c
})

var chosenColumns = []string{"method", "option", "value", "held_out_nll"}

// decodeChosen reads what ChosenOptions writes.
func decodeChosen(r io.Reader) (chosen, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cifar: the chosen options: %w", err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], chosenColumns) {
		return nil, fmt.Errorf("cifar: the chosen options does not begin with the columns %s", strings.Join(chosenColumns, ","))
	}
	c := make(chosen)
	for _, row := range rows[1:] {
		n, has := searchOf(row[0])
		if _, again := c[row[0]]; again || !has || n.option != row[1] || !slices.Contains(n.values[:], row[2]) {
			return nil, fmt.Errorf("cifar: the chosen options have the row %s, but %s=%s is not among the choices for %s, or there are two rows of it",
				strings.Join(row, ","), row[1], row[2], row[0])
		}
		c[row[0]] = row[2]
	}
	return c, nil
}

// ChosenOptions is the file chosen.csv of result lines: for each method whose runs of the set processor-grid are all
// there, the value with the lowest negative log likelihood on held-out images, the smaller of equals; a run that
// diverged is never chosen. missing names the methods whose runs are not all there.
func ChosenOptions(lines []results.Result) (file []byte, missing []string, err error) {
	byID := results.ByID(lines)
	rows := [][]string{chosenColumns}
	for _, n := range searches {
		var candidates []results.Experiment
		for _, value := range n.values {
			candidates = append(candidates, n.candidate(value))
		}
		best, lowest, complete, err := byID.Lowest(candidates, results.MetricNLL)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("cifar: choosing the option of %s: %w", n.method.Name, err)
		case !complete:
			missing = append(missing, n.method.Name)
		case best < 0:
			return nil, nil, fmt.Errorf("cifar: all runs of %s in the set processor-grid diverged, so none of their values can be chosen", n.method.Name)
		default:
			rows = append(rows, []string{n.method.Name, n.option, n.values[best], strconv.FormatFloat(lowest, 'g', 6, 64)})
		}
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	if err := errors.Join(w.WriteAll(rows), w.Error()); err != nil {
		return nil, nil, fmt.Errorf("cifar: writing the chosen options: %w", err)
	}
	return text.Bytes(), missing, nil
}

// isChosen says whether an experiment of the grid has the value that is chosen for its method.
func isChosen(e results.Experiment) bool {
	n, has := searchOf(e.Method)
	value, is := committedChoice()[e.Method]
	return has && is && n.candidate(value).ID() == e.ID()
}

// hasChosen says whether an experiment has the value that is chosen for its method, if there is a search for it.
func hasChosen(e results.Experiment) bool {
	n, searched := searchOf(e.Method)
	value, is := committedChoice()[e.Method]
	return !searched || is && e.Options[n.option] == value
}

// decaysAll says whether the weight decay is on all parameters.
func decaysAll(e results.Experiment) bool {
	decay, changed := e.Options["decay"]
	return decay == string(methods.DecayAll) || !changed && e.Fidelity == results.Released
}

// comparedTitle is the name of a method in tables of comparisons, with the options in which it differs from the others,
// and the chosen option for a column of its own.
func comparedTitle(e results.Experiment, list methods.List) (title, option string) {
	options := maps.Clone(e.Options)
	title, option = list.Title(e.Method), "–"
	if e.Fidelity == results.Released {
		title += ", released"
	}
	if !decaysAll(e) {
		title += ", decay on weights alone"
	}
	delete(options, "decay")
	if n, has := searchOf(e.Method); has && options[n.option] != "" {
		option = n.option + " = " + options[n.option]
		delete(options, n.option)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		title += fmt.Sprintf(", %s=%s", name, options[name])
	}
	return title, option
}
