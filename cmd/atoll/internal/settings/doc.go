// Package settings has the flags of commands from files: that of --config, and that in which the folder of a node keeps what its owner
// set. It changes them there, and has the node that runs take them.
package settings
