// Package genesis is the document that the nodes of a run share. It fixes the
// model, both optimizers and the times of the run; the hash of its bytes is the
// RunID. Others ask peers for the document and keep it on disk.
//
// Files, each may use those above it:
//
//	genesis           the document
//	text              the text of a run, by name
//	model             models that are built in
//	layout            tensors of other models
//	beside            files beside their weights
//	inner             the inner optimizer
//	first             initial values that are given
//	corpus, validate  what a genesis may ask for
//	tips              the tips of round 0
//	firstfile         initial values in a node's folder
//	defaults, spec    what suits a model, and what people choose
//	given             models that others have trained
//	base              what adapters belong to
//	export            the model in the form of other programs
//	settings          what its makers chose, for people
package genesis
