package paper

import (
	"fmt"
	"math"
	"testing"
)

func TestPublished(t *testing.T) {
	counts := map[string]int{}
	for _, c := range cells() {
		counts[c.Table]++
		if c.Std < 0 {
			t.Errorf("negative standard deviation: %+v", c)
		}
	}
	for table, want := range map[string]int{UCINLL: 9 * 4, UCIRMSE: 9 * 4, UCIDatasets: 9 * 2, CIFAR10ResNet14: 5 * 3,
		CIFAR100ResNet14: 5 * 3, CIFAR10WRN28: 8 * 3, CIFAR100WRN28: 8 * 3, Rank1Ablation: 6 * 3, OODSVHN: 5 * 4} {
		if counts[table] != want || len(Table(table)) != want {
			t.Errorf("%s has %d cells, want %d", table, counts[table], want)
		}
		delete(counts, table)
	}
	if len(counts) != 0 {
		t.Errorf("tables without a name: %v", counts)
	}
	if c, ok := Lookup(UCINLL, "Year Prediction MSD", "VDropout"); !ok || !math.IsNaN(c.Std) || c.Mean != 3.558 {
		t.Errorf("Year: %+v", c)
	}
	if c, ok := Lookup(CIFAR100WRN28, "DUE", "NLL"); !ok || !math.IsNaN(c.Mean) || c.Note != "out of memory" {
		t.Errorf("DUE: %+v", c)
	}
	if _, ok := Lookup(UCINLL, "Boston", "MFVI"); ok {
		t.Error("found a cell that the paper does not print")
	}
}

func ExampleLookup() {
	c, ok := Lookup(UCINLL, "Yacht Hydrodynamics", "Density Uncertainty")
	fmt.Println(c.Mean, c.Std, c.Decimals, ok)
	// Output: 2.593 0.067 3 true
}
