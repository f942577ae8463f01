// Package natlab puts real nodes where people have them: behind routers, on networks
// without a way in, on machines whose address changes. It makes those places of Linux
// network namespaces, as root, and starts the atoll program in them.
//
// A Net describes a world: the internet, the machines that it reaches, and the
// networks behind routers. Machines on the internet have addresses that count as public, and no
// namespace has a way out of the laboratory. All homes have the same private addresses,
// as homes do.
//
// A Lab is such a world while it exists. It starts nodes and kills them, changes
// addresses and pulls cables; what nodes say of themselves comes from their control
// sockets, which namespaces do not part.
package natlab
