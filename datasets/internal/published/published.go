// Package published holds the checksums of the files published with Gal &
// Ghahramani, "Dropout as a Bayesian Approximation", ICML 2016. The tool that
// makes the embedded files and the tests of what is embedded both check against
// them.
package published

// Set identifies the published files of one data set.
type Set struct {
	Name   string // short name in this program
	Folder string // folder name in the publication
	MD5    string // of data.txt
	// Splits is the SHA-256 of the index files one after the other:
	// index_train_0.txt, index_test_0.txt, index_train_1.txt, ...
	Splits string
}

// Sets lists the published data sets.
var Sets = []Set{
	{"boston", "bostonHousing", "d4accdce7a25600298819f8e28e8d593",
		"18b10e66698dc86e27dfac2dd2abc98b7d467fafce569974ef39be4b01eb59f5"},
	{"concrete", "concrete", "3a0d46c88b95e3181e5a29475b3a2e04",
		"d39ca20cfd3231c27c7f487eed3e87aff3a8595ece021f7f07cc031229e6e2b9"},
	{"energy", "energy", "261d4267aec44ab19d18cca07eb7060f",
		"a1b6240d92199026e82bda456f51b41dcf28db80ba086665d875bf8437ba5606"},
	{"kin8nm", "kin8nm", "d98fb393cdd2a57256699f8968d4d632",
		"c574bba51a5e229d94697698f27e1d5643131b5fd9013ed4dbd97aed652b7fac"},
	{"naval", "naval-propulsion-plant", "4a95e860425c9cf765b56f0134ad99cf",
		"3731380094c5b5f0fb72a87b64caf73c5a3c90b68351c84eb2bede61c4283b81"},
	{"protein", "protein-tertiary-structure", "03318b0daa2286057cb5a10b06d31be1",
		"023fd3158c800878f7965c307496c1bcb4621bb54b97a2fd4e00a758bb699c1f"},
	{"wine", "wine-quality-red", "4db64a13e3668d394c63b75404fe056d",
		"67d058bcd16fbdc5facf9aa77ed32d8685260d8944c5dcd129f12e310297cdb7"},
	{"yacht", "yacht", "7f76e247bb7ca38df3f1a5e918697b3f",
		"6dc08e1f2962f5f9af7c95159110df7ecbca1da241a41ef4281bf7383fc7d677"},
}
