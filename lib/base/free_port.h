// A TCP port of 127.0.0.1 for a server that has to be told its port before it starts.
#pragma once

#include <cstdint>

#include "lib/base/error.h"

namespace keelson {

// A port that nothing listens on at present, from 10000 to 29999. The choice is random, and below the kernel's range
// for outgoing connections (ip_local_port_range in ip(7)) unless that range leaves too few: a connection that another
// process opens before the server binds cannot take the port. kUnavailable: no port of many tries was free.
Result<uint16_t> FreePort();

}  // namespace keelson
