package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"reflect"
	"strings"

	"densityuncertainty/dul/nets"
)

// A setting is one of the things that fix the result of a run, as text.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// identity is everything that fixes the result of the run: one that goes on from
// a checkpoint must have the same. Functions count by what they return: the
// schedule for every step, order and augmentation for the first epoch.
func (r *run) identity() ([]setting, error) {
	var sizes []string
	inputs, targets, orders := sha256.New(), sha256.New(), sha256.New()
	for k, set := range r.data {
		size := fmt.Sprint(set.Len())
		switch x := set.Inputs.(type) {
		case nets.Pixels:
			size += fmt.Sprintf(" of %d x %d x %d", x.Channels(), x.Height, x.Width)
			_, _ = inputs.Write(x.Bytes) // a hash's Write never fails
		case nets.Floats:
			size += fmt.Sprintf(" of %v", x.Shape)
			writeFloats(inputs, x.Values)
		}
		sizes = append(sizes, size)
		writeFloats(targets, set.Targets)
		writeInts(targets, set.Labels)
		order, err := r.orders[k].of(0)
		if err != nil {
			return nil, err
		}
		writeInts(orders, order)
	}
	schedule, augmentation := sha256.New(), "none"
	for _, total := range []int{r.PretrainEpochs * r.epochSteps, r.Epochs * r.epochSteps} {
		for t := range total {
			writeFloats(schedule, []float64{r.Schedule(t, total)})
		}
	}
	if r.Augmentation != nil {
		draws := sha256.New()
		for i := range r.data[0].Len() {
			top, left, flip := r.Augmentation.Draw(r.orders[0].seed, 0, i)
			writeInts(draws, []int{top, left})
			if flip {
				writeInts(draws, []int{1})
			}
		}
		augmentation = digest(draws)
	}
	standardization := "none"
	if x, is := r.data[0].Inputs.(nets.Pixels); is {
		standardization = fmt.Sprint(x.Standardization)
	}
	return []setting{
		{"network", describe(r.model.Network)},
		{"likelihood", describe(r.model.Likelihood)},
		{"seeds", fmt.Sprint(r.model.Seeds())},
		{"type of parameters", fmt.Sprint(r.model.DType)},
		{"examples", strings.Join(sizes, ", ")},
		{"inputs", digest(inputs)},
		{"targets", digest(targets)},
		{"standardisation", standardization},
		{"Epochs", fmt.Sprint(r.Epochs)},
		{"PretrainEpochs", fmt.Sprint(r.PretrainEpochs)},
		{"BatchSize", fmt.Sprint(r.BatchSize)},
		{"Groups", describe(r.Groups)},
		{"PretrainGroups", describe(r.PretrainGroups)},
		{"Schedule", digest(schedule)},
		{"LogLikelihoodScale", fmt.Sprint(r.LogLikelihoodScale)},
		{"Order", digest(orders)},
		{"Augmentation", augmentation},
		{"Padding", fmt.Sprint(r.Padding)},
		{"BFloat16", fmt.Sprint(r.BFloat16)},
	}, nil
}

// sameRun names the first setting of a saved run in which this one differs.
func sameRun(saved, now []setting) error {
	values := map[string]string{}
	for _, s := range saved {
		values[s.Name] = s.Value
	}
	for _, s := range now {
		if value, has := values[s.Name]; !has || value != s.Value {
			return fmt.Errorf("its %s is %q, this run's is %q", s.Name, value, s.Value)
		}
	}
	return nil
}

// digest is a SHA-256, shortened: it is to tell runs apart, not to keep out an attacker.
func digest(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:16]) }

func writeFloats(h hash.Hash, numbers []float64) {
	for _, v := range numbers {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))) // a hash's Write never fails
	}
}

func writeInts(h hash.Hash, numbers []int) {
	for _, v := range numbers {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(v))) // a hash's Write never fails
	}
}

// longList is the most entries of a list that describe writes out.
const longList = 16

// describe is a value as text, the same in every process: what pointers and
// interfaces hold instead of addresses, of functions only whether they are there,
// and of long lists, such as the inducing points that baselines.DUE starts from,
// their length and a digest.
func describe(v any) string {
	var b strings.Builder
	describeValue(&b, reflect.ValueOf(v))
	return b.String()
}

func describeValue(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		b.WriteString("nil")
	case reflect.Interface, reflect.Pointer:
		describeValue(b, v.Elem())
	case reflect.Struct:
		b.WriteString(v.Type().String() + "{")
		for i := range v.NumField() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.Type().Field(i).Name + ": ")
			describeValue(b, v.Field(i))
		}
		b.WriteString("}")
	case reflect.Slice, reflect.Array:
		var list strings.Builder
		for i := range v.Len() {
			if i > 0 {
				list.WriteString(", ")
			}
			describeValue(&list, v.Index(i))
		}
		if v.Len() > longList {
			sum := sha256.Sum256([]byte(list.String()))
			fmt.Fprintf(b, "[%d entries, SHA-256 %x]", v.Len(), sum[:16])
			return
		}
		fmt.Fprintf(b, "[%s]", list.String())
	case reflect.Func:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		b.WriteString("func")
	default:
		fmt.Fprintf(b, "%v", v)
	}
}
