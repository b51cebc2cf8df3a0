// Command serve answers over HTTP by a network that experiment.Engine kept in its folder Networks, in the units of its data.
// Copy it and put in your own network.
//
//	serve networks/0123456789abcdef.safetensors
//	curl --data '[0.1, 2.5]' localhost:8080
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
)

// network is the network as it was trained.
var network = nets.MLP{Layers: dul.Density{InitStd: 0.1}, Widths: []int{20}}

// handler takes an input as a list of numbers and, where the data have categories, of words. It returns an experiment.Answer.
func handler(o *experiment.Opened) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var row []any
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		body.UseNumber() // as it is written
		if err := body.Decode(&row); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = fmt.Sprint(cell)
		}
		answer, err := o.PredictCells(r.Context(), cells...)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			log.Print(err)
		}
	})
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: serve FILE.safetensors")
	}
	o, err := experiment.Open(os.Args[1], network, likelihood.Gaussian{})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8080", handler(o)))
}
