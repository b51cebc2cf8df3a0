package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// 64 clients ask at once, and each gets the answer to its own question.
func TestClients(t *testing.T) {
	set := &datasets.Regression{Name: "mine", N: 40, D: 2}
	for i := range set.N {
		set.X, set.Y = append(set.X, float64(i%7), float64(i%5)), append(set.Y, 100+float64(i%7)*float64(i%5))
	}
	task := experiment.Task{Name: "mine", Data: experiment.Table{Set: set, Count: 1}, Network: nets.MLP{Widths: network.Widths}, Likelihood: likelihood.Gaussian{}}
	list := must.Get(task.Experiments(experiment.Adam(20, 8, 1e-2), 5, experiment.Method{Name: "density", Layers: network.Layers}))(t)
	folder := t.TempDir()
	must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), list...))(t)
	o := must.Get(experiment.Open(filepath.Join(folder, experiment.NetworkFile(list[0], 0)), network, likelihood.Gaussian{}))(t)
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
	for question, want := range map[string]int{"[1]": http.StatusUnprocessableEntity, `{"x": 1}`: http.StatusBadRequest, "": http.StatusBadRequest} {
		if status, text := ask(question); status != want {
			t.Errorf("%q: status %d, want %d: %s", question, status, want, text)
		}
	}
}
