// Package fetch brings data files that are too large to ship onto this machine,
// safely: each is looked for in a folder of the user's, then in the cache, then
// on a mirror, and last at its official address.
//
// What is downloaded goes to a ".part" file beside its final place; an
// interrupted download is resumed where the server allows it. Only a complete
// and checked file is given its final name, so that a file with that name is good.
// Several processes may fetch the same file at once: one does the work, the
// others wait for it.
package fetch
