// Package serve answers the requests of others: at once or, for what takes upload, the most urgent first and within bounds
// on bytes under way, requests that wait, and hashing. It is a machine without clock, socket or disk, as package gossip is:
// what it gives goes out as effects.
//
// Files, each may use those above it:
//
//	limits      bounds, each with its reason
//	answers     what is under way, and what waits
//	uplink      give payloads in the order of need
//	chunkqueue  share the upload among those that fetch a snapshot or blobs
//	manifests   make few manifests for others
//	serve       answer a request
package serve
