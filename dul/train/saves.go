package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"reflect"
	"strings"
	"time"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
)

// Checkpoints say where and when a run is saved. A run is also saved when it
// ends and when it is stopped; one that is killed loses what it did since the
// last save. If a checkpoint cannot be written, Trainer.Notes hears of it and
// training goes on; it is an error only of a run that is stopped.
type Checkpoints struct {
	// Folder holds the checkpoints of this run and of no other; "" saves none.
	Folder string
	// EverySteps saves once so many steps were done since the last save; 0 does
	// not count steps.
	EverySteps int
	// Every saves once so much time has passed since the last save. 0 means ten
	// minutes, or no limit if EverySteps is given.
	Every time.Duration
	// Keep is the number of checkpoints to keep; 0 means 2, so that a damaged one
	// has another to fall back on.
	Keep int
	// Version is that of the program, for the record.
	Version string
}

func (c Checkpoints) check() error {
	if c.EverySteps < 0 || c.Every < 0 || c.Keep < 0 {
		return fmt.Errorf("train.Checkpoints has EverySteps %d, Every %s and Keep %d; none may be negative", c.EverySteps, c.Every, c.Keep)
	}
	return nil
}

func (c Checkpoints) withDefaults() Checkpoints {
	if c.Every == 0 && c.EverySteps == 0 {
		c.Every = 10 * time.Minute
	}
	c.Keep = cmp.Or(c.Keep, 2)
	return c
}

// saves are the checkpoints of a run that is going on.
type saves struct {
	Checkpoints
	folder   *checkpoint.Folder
	identity []setting
	lastStep int // that is saved
	// When it was last tried, even if it failed.
	triedStep int
	triedTime time.Time
}

// saved is what a checkpoint holds besides the variables and the noise.
type saved struct {
	Run []setting `json:"run"`
	state
}

// trainSaving is train from the last checkpoint on, with new ones on the way.
func (r *run) trainSaving(ctx context.Context) (err error) {
	s := &saves{Checkpoints: r.Checkpoints.withDefaults()}
	if s.identity, err = r.identity(); err != nil {
		return err
	}
	if s.folder, err = checkpoint.Open(s.Folder, s.Keep); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.folder.Close()) }()
	if err := s.restore(r); err != nil {
		return err
	}
	r.saves = s
	err = r.train(ctx)
	if err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		return err // what failed is not worth saving
	}
	failed := s.save(r)
	if err == nil && failed != nil && !errors.Is(failed, ErrDiverged) {
		r.Notes(fmt.Sprintf("training is complete, but the same call would do it again from step %d: %v", s.lastStep, failed))
		return nil
	}
	return errors.Join(err, failed)
}

// restore goes to where the last checkpoint was saved.
func (s *saves) restore(r *run) error {
	var progress saved
	found, err := s.folder.Restore(checkpoint.State{
		Store: r.model.Store, Noise: r.model.Host, Progress: &progress,
		Check: func(progress any) error {
			if err := sameRun(progress.(*saved).Run, s.identity); err != nil {
				return fmt.Errorf("it is of another run: %w; use another folder, or the settings of that run", err)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	s.triedTime = time.Now()
	if !found.Found {
		return nil
	}
	for _, damage := range found.Damaged {
		r.Notes(fmt.Sprintf("%v; going on from step %d", damage, found.Step))
	}
	if found.Version != s.Version {
		r.Notes(fmt.Sprintf("%s was saved by version %q of the program and goes on with %q: what comes out is of both", found.Path, found.Version, s.Version))
	}
	r.step, r.state, s.lastStep, s.triedStep = found.Step, progress.state, found.Step, found.Step
	return nil
}

// afterStep saves if it is time to. That a checkpoint cannot be written does not
// end the run: the earlier ones are still there, and there will be another.
func (s *saves) afterStep(r *run) error {
	if s == nil {
		return nil
	}
	enoughSteps := s.EverySteps > 0 && r.step-s.triedStep >= s.EverySteps
	enoughTime := s.Every > 0 && time.Since(s.triedTime) >= s.Every
	if !enoughSteps && !enoughTime {
		return nil
	}
	err := s.save(r)
	s.triedStep, s.triedTime = r.step, time.Now()
	if err != nil && !errors.Is(err, ErrDiverged) {
		r.Notes(fmt.Sprintf("training goes on, but a stop would lose what was done since step %d: %v", s.lastStep, err))
		return nil
	}
	return err
}

// save writes a checkpoint, unless the run was saved at this step.
func (s *saves) save(r *run) error {
	if r.step == s.lastStep {
		return nil
	}
	if err := r.checkParameters(); err != nil {
		return err
	}
	err := s.folder.Save(r.step, checkpoint.State{
		Store: r.model.Store, Noise: r.model.Host,
		Progress: saved{Run: s.identity, state: r.state}, Version: s.Version,
	})
	if err != nil {
		return err
	}
	s.lastStep = r.step
	return nil
}

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
	settings := []setting{
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
	}
	if r.WeightEnergies { // not written when off, so that runs saved before there was one go on
		settings = append(settings, setting{"WeightEnergies", "true"})
	}
	if r.EarlyStopping.Score != nil {
		settings = append(settings, setting{"EarlyStopping", fmt.Sprint(max(1, r.EarlyStopping.Every))})
	}
	return settings, nil
}

// sameRun names the first setting of a saved run in which this one differs; one that either lacks is "".
func sameRun(saved, now []setting) error {
	values := map[string]string{}
	for _, s := range saved {
		values[s.Name] = s.Value
	}
	for _, s := range now {
		if values[s.Name] != s.Value {
			return fmt.Errorf("its %s is %q, this run's is %q", s.Name, values[s.Name], s.Value)
		}
		delete(values, s.Name)
	}
	for name, value := range values {
		return fmt.Errorf("its %s is %q, this run's is %q", name, value, "")
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
