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
	"densityuncertainty/figures/results"
)

// Processor is the protocol at the scale of a processor with two cores, with numbers by which methods can be compared
// with each other, though not with the paper's: 10 epochs of all training images but the 5,000 that are held out, and
// whole test sets. The weight decay is on all parameters, as in the released code, since in so few epochs posteriors
// stay where they start without it.
func (p Protocol) Processor() Protocol {
	p.Scale, p.Seeds, p.Epochs, p.Decay = results.Processor, []uint64{0}, 10, DecayAll
	return p.WithHeldOut()
}

// processorGrid is the protocol by whose runs the noise of Processor is chosen: 3 epochs of 20,000 images, measured
// on the images that Processor holds out too.
func (p Protocol) processorGrid() Protocol {
	p = p.Processor()
	p.Scale, p.Epochs, p.TrainN, p.Samples = results.ProcessorGrid, 3, 20000, 10
	return p
}

// A noiseScale is the option that says how much noise a method has, and the values among which the protocol processor
// chooses: as many for every method.
type noiseScale struct {
	method methods.Method
	values [4]string
}

// The standard deviations are of weights, which He's initialisation gives one of 0.06 to 0.12; those of Rank-1 BNN are
// of factors that are 1 in the mean. The least leaves networks without noise to speak of.
var noiseScales = []noiseScale{
	{methods.Density, [4]string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.DensityConstant, [4]string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.Rank1, [4]string{"0.001", "0.01", "0.1", "0.3"}},
	{methods.MFVI, [4]string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.MCDropout, [4]string{"0.05", "0.1", "0.2", "0.3"}},
	{methods.VDropout, [4]string{"0.03", "0.1", "0.25", "0.5"}},
	{methods.DensityMixture, [4]string{"0.001", "0.003", "0.01", "0.03"}},
	{methods.DensityDiagonal, [4]string{"0.001", "0.003", "0.01", "0.03"}},
}

// with is a protocol with a value of the noise; the values are among those above.
func (n noiseScale) with(p Protocol, value string) Protocol {
	if err := methods.Set(&p, map[string]string{n.method.NoiseScale: value}); err != nil {
		panic(fmt.Sprintf("cifar: %s: %v", n.method.Name, err))
	}
	return p
}

// candidate is the experiment of the grid with a value of the noise.
func (n noiseScale) candidate(value string) results.Experiment {
	return n.with(Paper(CIFAR10, ResNet14).processorGrid(), value).Experiments(n.method)[0]
}

// scaleOf is the noise scale of a method, and whether it has one.
func scaleOf(method string) (noiseScale, bool) {
	i := slices.IndexFunc(noiseScales, func(n noiseScale) bool { return n.method.Name == method })
	if i < 0 {
		return noiseScale{}, false
	}
	return noiseScales[i], true
}

func processorGridSet() results.Set {
	s := results.Set{
		Name: "processor-grid",
		Doc:  "the noise of each method for the set processor: four values, 3 epochs of 20,000 images, measured on 5,000 held-out images",
	}
	for _, n := range noiseScales {
		for _, value := range n.values {
			s.Experiments = append(s.Experiments, n.candidate(value))
		}
	}
	return s
}

// processorSet is what can be run with the noise that is chosen so far.
func processorSet(c chosen) results.Set {
	s := results.Set{Name: "processor", Doc: "every method with ResNet-14 on all of CIFAR-10 for 10 epochs, and OOD detection, within reach of a processor"}
	var lacking []string
	add := func(change func(Protocol) Protocol, list ...methods.Method) {
		for _, m := range list {
			p := change(Paper(CIFAR10, ResNet14).Processor())
			if n, has := scaleOf(m.Name); has {
				value, is := c[m.Name]
				if !is {
					if !slices.Contains(lacking, m.Name) {
						lacking = append(lacking, m.Name)
					}
					continue
				}
				p = n.with(p, value)
			}
			s.Experiments = append(s.Experiments, p.Experiments(m)...)
		}
	}
	seed := func(seed uint64) func(Protocol) Protocol {
		return func(p Protocol) Protocol {
			p.Seeds = []uint64{seed}
			return p
		}
	}
	key := []methods.Method{methods.Deterministic, methods.Density, methods.DensityConstant, methods.Rank1}
	add(seed(0), key...)
	add(seed(1), key...)
	add(seed(0), methods.MFVI, methods.MCDropout, methods.VDropout, methods.DensityMixture, methods.DensityDiagonal)
	add(func(p Protocol) Protocol {
		p.Decay = DecayWeights
		return p
	}, methods.Density)
	add(func(p Protocol) Protocol {
		p.LengthScale = shortLengthScale
		return p
	}, methods.SNGP)
	add(func(p Protocol) Protocol {
		p.ProcessRate = shortProcessRate
		return p
	}, methods.DUE)
	add(seed(0), methods.Ensemble)
	if len(lacking) > 0 {
		s.Lacks = fmt.Sprintf("the noise of %s is not chosen yet: run the set processor-grid, write figures/cifar/chosen.csv with \"reproduce choose images\", and build this program again",
			strings.Join(lacking, ", "))
	}
	return s
}

// shortLengthScale is Options.LengthScale for SNGP. With a scale of 1 the kernel of two images is next to 0 until the
// network has brought them close together, since 128 normalised numbers are 16 apart where nothing is known of them, and
// what is learned of one image says nothing of others. In 3 epochs of 20,000 images SNGP reached 29 % with 1, and 44 %
// with the 20 of its authors' code (one seed, 1000 test images).
const shortLengthScale = 20

// shortProcessRate is Protocol.ProcessRate for DUE: in 3 epochs of 20,000 images, where a plain network reached 55 %, it
// reached 24 % with a factor of 1 and 37 % with 10 (one seed, 1000 test images).
const shortProcessRate = 10

// chosen are the values of the noise scales by the names of the methods; methods whose grid is not done have none.
type chosen map[string]string

// chosenText is what ChosenNoise made of the committed results.
//
//go:embed chosen.csv
var chosenText []byte

// committedChoice decodes the embedded file, a part of the program: a fault in it is a programming error, which
// TestChosenNoise would show.
var committedChoice = sync.OnceValue(func() chosen {
	c, err := decodeChosen(bytes.NewReader(chosenText))
	if err != nil {
		panic(err)
	}
	return c
})

var chosenColumns = []string{"method", "option", "value", "held_out_nll"}

// decodeChosen reads what ChosenNoise writes.
func decodeChosen(r io.Reader) (chosen, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cifar: the chosen noise: %w", err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], chosenColumns) {
		return nil, fmt.Errorf("cifar: the chosen noise does not begin with the columns %s", strings.Join(chosenColumns, ","))
	}
	c := make(chosen)
	for _, row := range rows[1:] {
		n, has := scaleOf(row[0])
		if _, again := c[row[0]]; again || !has || n.method.NoiseScale != row[1] || !slices.Contains(n.values[:], row[2]) {
			return nil, fmt.Errorf("cifar: the chosen noise has the row %s, but %s=%s is not among the choices for %s, or there are two rows of it",
				strings.Join(row, ","), row[1], row[2], row[0])
		}
		c[row[0]] = row[2]
	}
	return c, nil
}

// ChosenNoise is the file chosen.csv of result lines: for each method whose runs of the set processor-grid are all
// there, the value with the lowest negative log likelihood on held-out images, the smaller of equals; a run that
// diverged is never chosen. missing names the methods whose runs are not all there.
func ChosenNoise(lines []results.Result) (file []byte, missing []string, err error) {
	byID := results.ByID(lines)
	rows := [][]string{chosenColumns}
	for _, n := range noiseScales {
		var candidates []results.Experiment
		for _, value := range n.values {
			candidates = append(candidates, n.candidate(value))
		}
		best, lowest, complete, err := byID.Lowest(candidates, results.MetricNLL)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("cifar: choosing the noise of %s: %w", n.method.Name, err)
		case !complete:
			missing = append(missing, n.method.Name)
		case best < 0:
			return nil, nil, fmt.Errorf("cifar: all runs of %s in the set processor-grid diverged, so none of their values can be chosen", n.method.Name)
		default:
			rows = append(rows, []string{n.method.Name, n.method.NoiseScale, n.values[best], strconv.FormatFloat(lowest, 'g', 6, 64)})
		}
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	if err := errors.Join(w.WriteAll(rows), w.Error()); err != nil {
		return nil, nil, fmt.Errorf("cifar: writing the chosen noise: %w", err)
	}
	return text.Bytes(), missing, nil
}

// isChosen says whether an experiment of the grid has the value that is chosen for its method.
func isChosen(e results.Experiment) bool {
	n, has := scaleOf(e.Method)
	value, is := committedChoice()[e.Method]
	return has && is && n.candidate(value).ID() == e.ID()
}

// processorTitle is the name of a method in tables of the protocol processor, with the options in which it differs
// from the others, and the noise for a column of its own.
func processorTitle(e results.Experiment, list methods.List) (title, noise string) {
	options := maps.Clone(e.Options)
	title, noise = list.Title(e.Method), "–"
	if options["decay"] == string(DecayAll) {
		delete(options, "decay")
	} else {
		title += ", decay on weights alone"
	}
	if n, has := scaleOf(e.Method); has && options[n.method.NoiseScale] != "" {
		noise = n.method.NoiseScale + " = " + options[n.method.NoiseScale]
		delete(options, n.method.NoiseScale)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		title += fmt.Sprintf(", %s=%s", name, options[name])
	}
	return title, noise
}
