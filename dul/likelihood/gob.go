package likelihood

import "encoding/gob"

// Predictions, which know their likelihood, can be encoded by encoding/gob, as notebook.Keep does. A likelihood of your own has
// to be registered in the same way, in each program that encodes or decodes it.
func init() {
	for _, l := range []Likelihood{Gaussian{}, KnownNoise{}, Heteroscedastic{}, StudentT{}, Poisson{}, Quantiles{}, Categorical{}} {
		gob.Register(l)
	}
}

// gob refuses structures without fields, but for these methods.

// GobEncode implements gob.GobEncoder.
func (Gaussian) GobEncode() ([]byte, error) { return nil, nil }

// GobDecode implements gob.GobDecoder.
func (*Gaussian) GobDecode([]byte) error { return nil }

// GobEncode implements gob.GobEncoder.
func (Heteroscedastic) GobEncode() ([]byte, error) { return nil, nil }

// GobDecode implements gob.GobDecoder.
func (*Heteroscedastic) GobDecode([]byte) error { return nil }

// GobEncode implements gob.GobEncoder.
func (Poisson) GobEncode() ([]byte, error) { return nil, nil }

// GobDecode implements gob.GobDecoder.
func (*Poisson) GobDecode([]byte) error { return nil }
