package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math"
	"reflect"
	"strings"

	"densityuncertainty/dul/params"
)

// A setting is one of the things that fix the result of a run, as text.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// identity is everything that fixes the result of the run: one that goes on from
// a checkpoint must have the same. Functions count by what they return: the
// schedule for every step, order and augmentation for the first epoch.
func (r *classificationRun) identity() ([]setting, error) {
	data := digest(func(h hash.Hash) {
		_, _ = h.Write(r.data.Pixels) // a hash's Write never fails
		for _, label := range r.data.Labels {
			writeNumbers(h, uint64(label))
		}
	})
	schedule := digest(func(h hash.Hash) {
		for _, total := range []int{r.PretrainEpochs * r.epochSteps, r.Epochs * r.epochSteps} {
			for t := range total {
				writeNumbers(h, math.Float64bits(r.Schedule(t, total)))
			}
		}
	})
	order := r.Order(r.Seed, 0, r.data.N())
	if err := isPermutation(order, r.data.N()); err != nil {
		return nil, fmt.Errorf("the order of epoch 0: %w", err)
	}
	orders := digest(func(h hash.Hash) {
		for _, i := range order {
			writeNumbers(h, uint64(i))
		}
	})
	augmentation := "none"
	if r.Augmentation != nil {
		augmentation = digest(func(h hash.Hash) {
			for i := range r.data.N() {
				top, left, flip := r.Augmentation.Draw(r.Seed, 0, i)
				writeNumbers(h, uint64(top), uint64(left))
				if flip {
					writeNumbers(h, 1)
				}
			}
		})
	}
	return []setting{
		{"network", describe(r.fitted.Network)},
		{"classes", fmt.Sprint(r.fitted.Classes)},
		{"classifier's seed", fmt.Sprint(params.Seeds(r.fitted.Store))},
		{"type of parameters", fmt.Sprint(r.fitted.DType)},
		{"images", fmt.Sprintf("%d of %d x %d x %d", r.data.N(), r.data.channels(), r.data.Height, r.data.Width)},
		{"pixels and labels", data},
		{"channel means", fmt.Sprint(r.data.Standardization.Mean)},
		{"channel standard deviations", fmt.Sprint(r.data.Standardization.Std)},
		{"Epochs", fmt.Sprint(r.Epochs)},
		{"PretrainEpochs", fmt.Sprint(r.PretrainEpochs)},
		{"BatchSize", fmt.Sprint(r.BatchSize)},
		{"Groups", describe(r.Groups)},
		{"PretrainGroups", describe(r.PretrainGroups)},
		{"Schedule", schedule},
		{"LogLikelihoodScale", fmt.Sprint(r.LogLikelihoodScale)},
		{"Seed", fmt.Sprint(r.Seed)},
		{"Order", orders},
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

// digest is the SHA-256 of what fill writes, shortened: it is to tell runs
// apart, not to keep out an attacker.
func digest(fill func(h hash.Hash)) string {
	h := sha256.New()
	fill(h)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func writeNumbers(h hash.Hash, numbers ...uint64) {
	for _, v := range numbers {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, v)) // a hash's Write never fails
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
			sum := digest(func(h hash.Hash) { _, _ = io.WriteString(h, list.String()) }) // a hash's Write never fails
			fmt.Fprintf(b, "[%d entries, SHA-256 %s]", v.Len(), sum)
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
