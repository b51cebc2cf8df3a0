package checkpoint

import "crypto/sha256"

// SumLine is the content of checkpoint.json.sha256 for that of checkpoint.json.
func SumLine(manifest []byte) []byte {
	sum := sha256.Sum256(manifest)
	return sumLine(sum[:])
}
