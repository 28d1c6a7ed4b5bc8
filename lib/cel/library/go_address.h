// Why Go's netip.ParseAddr takes a text for no address, in its words.
#pragma once

#include <string>
#include <string_view>

namespace keelson::cel {

// ParseAddr("1.2.3"): IPv4 address too short. For texts that IpAddress::Parse() refuses.
std::string WhyNoAddress(std::string_view text);

}  // namespace keelson::cel
