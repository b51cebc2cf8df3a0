package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	strict "encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/atomicfile"
)

// The files of a checkpoint.
const (
	modelName    = "model.safetensors"
	manifestName = "checkpoint.json"
	sumName      = manifestName + ".sha256"
)

// formatVersion is that of manifest. A checkpoint of any other is refused.
const formatVersion = 1

// A manifest is what checkpoint.json holds.
type manifest struct {
	Format      int              `json:"format"`
	Step        int              `json:"step"`
	Saved       time.Time        `json:"saved"`
	Version     string           `json:"version"`
	Progress    json.RawMessage  `json:"progress"`
	Noise       []byte           `json:"noise"` // nil without a host source
	ModelSHA256 string           `json:"model_sha256"`
	Variables   []variable       `json:"variables"` // in the order of their creation
	Parameters  []storeParameter `json:"store_parameters"`
}

// A variable is what of a variable is not in its tensor.
type variable struct {
	Path      string `json:"path"`
	Trainable bool   `json:"trainable"`
}

// A storeParameter is a parameter of the store in GoMLX's sense, a named
// setting: package params keeps the roles of parameters and the seeds of their
// initial values there.
type storeParameter struct {
	Path  string `json:"path"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// write writes a checkpoint into the folder at path, which must not exist.
func write(path string, step int, state State) error {
	m := manifest{Format: formatVersion, Step: step, Saved: time.Now().UTC(), Version: state.Version}
	if step < 0 {
		return errors.New("the step is negative")
	}
	var err error
	if m.Progress, err = json.Marshal(state.Progress); err != nil {
		return fmt.Errorf("the progress cannot be stored: %w", err)
	}
	if state.Noise != nil {
		if m.Noise, err = state.Noise.State(); err != nil {
			return err
		}
	}
	var list []namedTensor
	for v := range state.Store.IterVariables() {
		if stochastic.IsNoiseBuffer(v) {
			continue
		}
		value, err := v.Value()
		if err != nil {
			return fmt.Errorf("reading variable %s: %w", v.Path(), err)
		}
		list = append(list, namedTensor{tensorName(v.Path()), value})
		m.Variables = append(m.Variables, variable{v.Path(), v.Trainable})
	}
	for path, value := range state.Store.IterParams() {
		p, err := encodeParameter(path, value)
		if err != nil {
			return err
		}
		m.Parameters = append(m.Parameters, p)
	}
	slices.SortFunc(m.Parameters, func(a, b storeParameter) int { return cmp.Compare(a.Path, b.Path) })
	return atomicfile.WriteFolder(path, func(folder string) error {
		var err error
		if m.ModelSHA256, err = writeModel(filepath.Join(folder, modelName), list); err != nil {
			return err
		}
		text, err := json.MarshalIndent(m, "", "\t")
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		return errors.Join(
			os.WriteFile(filepath.Join(folder, manifestName), text, 0o644),
			os.WriteFile(filepath.Join(folder, sumName), sumLine(sum[:]), 0o644))
	})
}

// sumLine is the content of the file that guards checkpoint.json.
func sumLine(sum []byte) []byte { return fmt.Appendf(nil, "%x  %s\n", sum, manifestName) }

// tensorName is the name in a file of the variable at path.
func tensorName(path string) string { return strings.TrimPrefix(path, model.RootScopePath) }

// bufferSize spares small tensors a system call each.
const bufferSize = 1 << 20

// writeModel writes a safetensors file and returns its SHA-256.
func writeModel(path string, list []namedTensor) (sum string, err error) {
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(file, hash), bufferSize)
	err = writeTensors(w, list, nil)
	if err == nil {
		err = w.Flush()
	}
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, file.Close())
}

// readModel reads a safetensors file and returns its SHA-256, which stands for
// the whole file: readTensors takes every byte.
func readModel(path string) (list []namedTensor, metadata map[string]string, sum string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, "", err
	}
	info, err := file.Stat()
	if err == nil {
		hash := sha256.New()
		r := bufio.NewReaderSize(file, bufferSize)
		list, metadata, err = readTensors(io.TeeReader(r, hash), info.Size())
		sum = hex.EncodeToString(hash.Sum(nil))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, nil, "", fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return list, metadata, sum, nil
}

// A contents is a checkpoint as it was read.
type contents struct {
	manifest
	tensors map[string]*tensors.Tensor // by name in the file
}

// read reads and checks the checkpoint of the given step at path.
func read(path string, step int) (*contents, error) {
	text, err := os.ReadFile(filepath.Join(path, manifestName))
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(filepath.Join(path, sumName))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); !bytes.Equal(line, sumLine(sum[:])) {
		return nil, fmt.Errorf("%s does not have the SHA-256 in %s", manifestName, sumName)
	}
	var form struct{ Format int }
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if form.Format != formatVersion {
		return nil, fmt.Errorf("%s has format %d, this program reads format %d", manifestName, form.Format, formatVersion)
	}
	c := &contents{tensors: map[string]*tensors.Tensor{}}
	if err := decodeStrictly(text, &c.manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if c.Step != step {
		return nil, fmt.Errorf("%s is that of step %d", manifestName, c.Step)
	}
	list, _, sum, err := readModel(filepath.Join(path, modelName))
	if err != nil {
		return nil, err
	}
	if sum != c.ModelSHA256 {
		return nil, fmt.Errorf("%s has SHA-256 %s, %s says %s", modelName, sum, manifestName, c.ModelSHA256)
	}
	for _, t := range list {
		c.tensors[t.name] = t.tensor
	}
	for _, v := range c.Variables {
		if c.tensors[tensorName(v.Path)] == nil {
			return nil, fmt.Errorf("%s lists variable %s, which %s lacks", manifestName, v.Path, modelName)
		}
	}
	return c, nil
}

// apply puts the checkpoint into a run's state: all of it, or after an error
// nothing, except that Progress may have changed.
func (c *contents) apply(state State) error {
	saved := map[string]bool{}
	for _, v := range c.Variables {
		saved[v.Path] = true
		value := c.tensors[tensorName(v.Path)]
		if err := checkFits(state.Store, v.Path, value); err != nil {
			return err
		}
	}
	for v := range state.Store.IterVariables() {
		if !saved[v.Path()] && !stochastic.IsNoiseBuffer(v) {
			return fmt.Errorf("the model has variable %s, the checkpoint has not", v.Path())
		}
	}
	settings := map[string]any{}
	for _, p := range c.Parameters {
		value, err := p.decode()
		if err != nil {
			return err
		}
		settings[p.Path] = value
	}
	if (c.Noise != nil) != (state.Noise != nil) {
		return fmt.Errorf("saved with noise from the host: %t, to be continued with noise from the host: %t; use the same backend", c.Noise != nil, state.Noise != nil)
	}
	if state.Progress != nil {
		if string(c.Progress) == "null" {
			return errors.New("it was saved without progress")
		}
		if err := decodeStrictly(c.Progress, state.Progress); err != nil {
			return fmt.Errorf("the progress is not a %T: %w", state.Progress, err)
		}
	}
	if state.Noise != nil {
		if err := state.Noise.SetState(c.Noise); err != nil {
			return err
		}
	}
	state.Store.SetParams(settings)
	for _, saved := range c.Variables {
		v, err := params.Set(state.Store, saved.Path, c.tensors[tensorName(saved.Path)])
		if err != nil {
			return err
		}
		v.SetTrainable(saved.Trainable)
	}
	return nil
}

// checkFits says whether a tensor can be the value of the variable at path.
func checkFits(store *model.Store, path string, value *tensors.Tensor) error {
	if v := store.GetVariable(path); v != nil && !v.Shape().Equal(value.Shape()) {
		return fmt.Errorf("variable %s is %s in the model and %s in the file", path, v.Shape(), value.Shape())
	}
	return nil
}

// decodeStrictly reads one JSON value and nothing after it. Unknown fields are errors,
// so that what was saved is not silently dropped, and so are names that are there twice.
func decodeStrictly(text []byte, target any) error {
	return strict.Unmarshal(text, target, strict.RejectUnknownMembers(true))
}

// encodeParameter stores a setting as text. It refuses types that decode does
// not know.
func encodeParameter(path string, value any) (storeParameter, error) {
	p := storeParameter{Path: path, Type: fmt.Sprintf("%T", value), Value: fmt.Sprint(value)}
	if _, err := p.decode(); err != nil {
		return storeParameter{}, err
	}
	return p, nil
}

func (p storeParameter) decode() (any, error) {
	var value any
	switch p.Type {
	case "string":
		return p.Value, nil
	case "bool":
		value = new(bool)
	case "int":
		value = new(int)
	case "int64":
		value = new(int64)
	case "float64":
		value = new(float64)
	default:
		return nil, fmt.Errorf("the store's parameter %s is a %s, which a checkpoint cannot hold; use a string, bool, int, int64 or float64", p.Path, p.Type)
	}
	if _, err := fmt.Sscan(p.Value, value); err != nil {
		return nil, fmt.Errorf("the store's parameter %s of type %s has the value %q: %w", p.Path, p.Type, p.Value, err)
	}
	return reflect.ValueOf(value).Elem().Interface(), nil
}
