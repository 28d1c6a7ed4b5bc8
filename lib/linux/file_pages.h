// Memory of a process that waits for rare calls.
#pragma once

namespace keelson::linux {

// Lets go of the pages of code and constants, of the program and its libraries, that this process has mapped: most of them
// only its start has needed. The kernel maps them again, from its cache, when they are used. Any thread may call it at any time.
void ReleaseFilePages();

}  // namespace keelson::linux
