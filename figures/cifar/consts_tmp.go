package cifar
const (
	replicates    = 1000
	level         = 0.95
	bootstrapSeed = 1
)
