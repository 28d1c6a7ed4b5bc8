// Internal to lib/k8s: prints JSON values as Go does.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace keelson::k8s {

// A float as %v prints it: 1.5, 1e+21.
std::string GoFloat(double value);
// The value of a field error: "text" in quotes, numbers and booleans, objects and lists as JSON with sorted keys,
// "null" in quotes.
std::string PrintBadValue(const boost::json::value& value);
// As JSON with sorted keys and Go's escapes.
std::string SortedJson(const boost::json::value& value);

}  // namespace keelson::k8s
