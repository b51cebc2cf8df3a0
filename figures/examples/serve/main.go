// Command serve answers over HTTP by a network that experiment.Engine kept in its folder Networks, in the units of its data.
// Copy it and put in your own network.
//
//	serve networks/0123456789abcdef.safetensors
//	curl --data '[0.1, 2.5]' localhost:8080
//	curl --data '[[0.1, 2.5], [0.2, 3]]' localhost:8080
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/trained"
)

// network is the network as it was trained.
var network = nets.MLP{Layers: dul.Density{InitStd: 0.1}, Widths: []int{20}}

// handler takes an input as a list of numbers and, where the data have categories, of words, with null for a missing cell, and
// returns a trained.Answer. For several inputs, a list of such lists, it returns a list of answers.
func handler(o *trained.Opened) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		table, several, err := tableOf(http.MaxBytesReader(w, r.Body, 1<<20), o.Columns())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answers, err := o.PredictAllCells(r.Context(), table)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		var answer any = answers
		if !several {
			answer = answers[0]
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			log.Print(err)
		}
	})
}

// tableOf reads one row or several, with cells as the file of the data spells them.
func tableOf(body io.Reader, columns datasets.Columns) (table [][]string, several bool, err error) {
	const want = "send a list of numbers and words, such as [0.1, null, \"red\"], or a list of such lists"
	var list []any
	text := json.NewDecoder(body)
	text.UseNumber() // as it is written
	if err := text.Decode(&list); errors.Is(err, io.EOF) {
		return nil, false, errors.New("the body is empty; " + want)
	} else if err != nil {
		return nil, false, fmt.Errorf("%w; %s", err, want)
	}
	if _, err := text.Token(); !errors.Is(err, io.EOF) {
		return nil, false, errors.New("there is text after the list; " + want)
	}
	rows := [][]any{list}
	if len(list) > 0 {
		_, several = list[0].([]any)
	}
	for i := 0; several && i < len(list); i++ {
		row, is := list[i].([]any)
		if !is {
			return nil, false, fmt.Errorf("entry %d of the list is no list; %s", i, want)
		}
		rows = append(rows[:i], row)
	}
	for i, row := range rows {
		table = append(table, make([]string, len(row)))
		for j, v := range row {
			switch v := v.(type) {
			case nil: // a missing cell is empty
			case string, json.Number:
				table[i][j] = fmt.Sprint(v)
			case bool:
				table[i][j] = fmt.Sprint(v)
				if j < len(columns) {
					if at := slices.IndexFunc(columns[j].Categories, func(word string) bool { return strings.EqualFold(word, table[i][j]) }); at >= 0 {
						table[i][j] = columns[j].Categories[at] // such as True
					}
				}
			default:
				return nil, false, fmt.Errorf("cell %d is neither a number nor a word; %s", j, want)
			}
		}
	}
	return table, several, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: serve FILE.safetensors")
	}
	o, err := trained.Open(os.Args[1], network, likelihood.Gaussian{})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8080", handler(o)))
}
