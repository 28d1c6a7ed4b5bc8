// The object that patches and configurations are applied to: it has all that they can touch.
#pragma once

#include <string_view>

#include <boost/json/value.hpp>

namespace keelson::fuzz {

namespace json = boost::json;

extern const char* const kPod;
const json::value& Document();  // the same, parsed

bool Parse(std::string_view text, json::value& out);

}  // namespace keelson::fuzz
