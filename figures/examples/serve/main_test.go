package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/trained"
)

// fitted is the file of a small trained network, and the scale of its target.
func fitted(t *testing.T) (file string, d experiment.Data) {
	t.Helper()
	set := &datasets.Regression{Name: "mine", N: 40, D: 2}
	for i := range set.N {
		set.X, set.Y = append(set.X, float64(i%7), float64(i%5)), append(set.Y, 100+float64(i%7)*float64(i%5))
	}
	task := experiment.Task{Name: "mine", Data: experiment.Table{Set: set, Count: 1}, Network: nets.MLP{Widths: network.Widths}, Likelihood: likelihood.Gaussian{}}
	list := must.Get(task.Experiments(experiment.Adam(20, 8, 1e-2), 5, experiment.Method{Name: "density", Layers: network.Layers}))(t)
	folder := t.TempDir()
	must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), list...))(t)
	return filepath.Join(folder, list[0].NetworkFile(0)), must.Get(task.Data.Load(t.Context(), 0))(t)
}

// Python computes from the file what Go does, by NumPy and by ONNX Runtime: 20,000 draws of each have means and deviations that
// differ by chance, and by not more than rounding where their random numbers are the same.
func TestInPython(t *testing.T) {
	run := func(t *testing.T, name string, arguments ...string) string {
		t.Helper()
		var problems bytes.Buffer
		c := exec.Command(name, arguments...)
		c.Stderr = &problems
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, &problems)
		}
		return string(out)
	}
	file, d := fitted(t)
	o := must.Get(trained.Open(file, network, likelihood.Gaussian{}))(t)
	backend := must.Get(gobackend.New(""))(t)
	program, shape, err := o.Exec(backend)
	must.Do(t, err)
	must.Get(program.Compile(shape))(t) // once for any number of rows
	const n = 20000
	inputs := [][]float64{{3, 2}, {0, 4}, {9, -3}}
	ours, same := make([][2]float64, 3), make([][2]float64, 3)
	for i, x := range inputs {
		named, _, err := checkpoint.ReadTensors(file)
		must.Do(t, err)
		m := must.Get(nets.New(backend, network, likelihood.Gaussian{}, 1))(t)
		must.Do(t, checkpoint.SetTensors(m.Store, named))
		p := must.Get(predict.Sample(t.Context(), m, nets.Rows(d.Inputs.Transform(x), 2), predict.Options{Samples: n, Seed: new(uint64)}))(t)
		mean, std, err := must.Get(p.Predictive())(t).Moments()
		must.Do(t, err)
		ours[i] = [2]float64{mean[0]*d.Unit + d.Zero, std[0] * d.Unit}
		must.Do(t, program.Store().GetVariable("/"+model.RNGStateVariableName).SetValue(tensors.FromValue([]uint64{1, 0, 0})))
		found := must.Get(program.Exec(slices.Repeat([][]float64{x}, n+i)))(t)
		means, variances := tensors.MustCopyFlatData[float64](found[0])[:n], tensors.MustCopyFlatData[float64](found[1])
		centre, spread := stat.PopMeanVariance(means, nil)
		same[i] = [2]float64{centre, math.Sqrt(spread + stat.Mean(variances, nil))}
	}
	alike := func(t *testing.T, what string, i int, theirs [2]float64) {
		t.Logf("at %v: %v, %s %v", inputs[i], ours[i], what, theirs)
		must.Z(t, (ours[i][0]-theirs[0])/(ours[i][1]*math.Sqrt(2./n)), "%s: the mean at %v", what, inputs[i])
		must.Near(t, theirs[1]/ours[i][1], 1, 0.04, "%s: the deviation over ours at %v", what, inputs[i])
	}
	ask := func(t *testing.T, python, script, file string, i int) (theirs [2]float64) {
		must.Get(fmt.Sscan(run(t, python, script, file, fmt.Sprint(inputs[i][0]), fmt.Sprint(inputs[i][1])), &theirs[0], &theirs[1]))(t)
		return theirs
	}
	for i := range inputs {
		alike(t, "by Exec", i, same[i])
	}
	t.Run("NumPy", func(t *testing.T) {
		python := fixtures.Python(t, "import numpy, safetensors")
		for i := range inputs {
			alike(t, "by NumPy", i, ask(t, python, "weights.py", file, i))
		}
	})
	t.Run("ONNX", func(t *testing.T) {
		python := fixtures.Python(t, "import numpy, onnxruntime")
		library := "import glob, os, onnxruntime; print(glob.glob(os.path.dirname(onnxruntime.__file__) + '/capi/libonnxruntime*.[0-9]*')[0])"
		t.Setenv("ONNXRUNTIME_SHARED_LIBRARY_PATH", strings.TrimSpace(run(t, python, "-c", library)))
		other := filepath.Join(t.TempDir(), "network.onnx")
		run(t, "go", "run", "-tags", "noxla,onnx", "./onnx", file, other)
		for i := range inputs {
			theirs := ask(t, python, "onnx/predict.py", other, i)
			t.Logf("at %v: %v, by ONNX Runtime %v", inputs[i], same[i], theirs)
			for k, v := range theirs {
				must.Near(t, v/same[i][k], 1, 1e-5, "at %v ONNX Runtime's mean or deviation over ours", inputs[i])
			}
		}
	})
}

// 64 clients ask at once, and each gets the answer to its own question.
func TestClients(t *testing.T) {
	file, _ := fitted(t)
	o := must.Get(trained.Open(file, network, likelihood.Gaussian{}))(t)
	server := httptest.NewServer(handler(o))
	defer server.Close()
	ask := func(question string) (int, string) {
		response, err := http.Post(server.URL, "application/json", strings.NewReader(question))
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, string(text)
	}
	var all sync.WaitGroup
	for client := range 64 {
		row := []float64{float64(client) / 10, 6 - float64(client)/20}
		want := must.Get(o.Predict(t.Context(), row))(t)
		if !(want.Low < want.Mean && want.Mean < want.High) || want.Mean < 50 {
			t.Errorf("the answer to %v is %+v", row, want)
		}
		question, answer := must.Get(json.Marshal(row))(t), bytes.NewBuffer(append(must.Get(json.Marshal(want))(t), '\n'))
		all.Go(func() {
			for range 10 {
				if status, got := ask(string(question)); status != http.StatusOK || got != answer.String() {
					t.Errorf("client %d: %d %s, want %s", client, status, got, answer)
				}
			}
		})
	}
	all.Wait()
	for _, c := range []struct {
		question string
		status   int
		answer   string
	}{
		{"[1]", http.StatusUnprocessableEntity, "1 cells, expected 2"},
		{"[1, null]", http.StatusUnprocessableEntity, `has no value ("")`},
		{"[1, true]", http.StatusUnprocessableEntity, `"true" is not a decimal number`},
		{`[1, "2\u002e5"]`, http.StatusOK, `{"Mean":`},
		{"[[1, 2], [3, 4]]", http.StatusOK, `},{"Mean":`},
		{`{"x": 1}`, http.StatusBadRequest, "send a list of numbers"},
		{"[1, [2]]", http.StatusBadRequest, "cell 1 is neither"},
		{"[[1, 2], 3]", http.StatusBadRequest, "entry 1 of the list is no list"},
		{"[1, 2] rubbish", http.StatusBadRequest, "text after the list"},
		{"[1, 2] [3, 4]", http.StatusBadRequest, "text after the list"},
		{"", http.StatusBadRequest, "the body is empty"},
	} {
		if status, text := ask(c.question); status != c.status || !strings.Contains(text, c.answer) {
			t.Errorf("%q: status %d, want %d: %s", c.question, status, c.status, text)
		}
	}

	// Many rows at once have the answers of each alone, and equal rows equal ones; other draws have others.
	rows := [][]float64{{1, 2}, {3, 4}, {1, 2}}
	for len(rows) < 70 {
		rows = append(rows, []float64{float64(len(rows)) / 10, 1})
	}
	many, other := must.Get(o.PredictAll(t.Context(), rows))(t), must.Get(must.Get(o.With(1000, 7))(t).PredictAll(t.Context(), rows))(t)
	for i, row := range rows {
		one := must.Get(o.Predict(t.Context(), row))(t)
		must.Near(t, many[i].Mean, one.Mean, 1e-4, "row %d: the mean", i)
		must.Near(t, many[i].Low, one.Low, 1e-4, "row %d: the interval's lower end", i)
		must.Near(t, other[i].Mean, one.Mean, (one.High-one.Low)/4, "row %d: the mean of other draws", i)
		if other[i].Mean == one.Mean {
			t.Errorf("row %d: other draws have the same mean", i)
		}
	}
	if many[0].Mean != many[2].Mean || len(many) != len(rows) {
		t.Errorf("equal rows have the answers %+v and %+v", many[0], many[2])
	}
	rows[5] = []float64{1}
	must.GetErr(o.PredictAll(t.Context(), rows))(t, "input 5: the input has 1 numbers")
	must.GetErr(o.With(0, 1))(t) // no draws are no error
}

// Cells are as the file of the data spells them.
func TestTableOf(t *testing.T) {
	columns := datasets.Columns{{Name: "a", Categories: []string{"", "False", "True"}}, {Name: "b", MayMiss: true}}
	table, several, err := tableOf(strings.NewReader(`[[true, null], [null, 1e3], ["x", 0.10]]`), columns)
	if err != nil || !several || fmt.Sprintf("%q", table) != `[["True" ""] ["" "1e3"] ["x" "0.10"]]` {
		t.Errorf("%q, %t, %v", table, several, err)
	}
}
