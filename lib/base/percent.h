// Percent encoding (RFC 3986, 2.1), as it is in the paths and queries of URLs.
#pragma once

#include <string>
#include <string_view>

namespace keelson {

// Everything but letters, digits, "-", ".", "_" and "~", in capital hexadecimal digits. For a segment of a path, and for
// names and values in a query.
std::string PercentEncode(std::string_view text);

// A "%" that no two hexadecimal digits follow stands for itself.
std::string PercentDecode(std::string_view text);
// As in a query, where a "+" is a space.
std::string QueryDecode(std::string_view text);

}  // namespace keelson
