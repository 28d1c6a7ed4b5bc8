// A pod with all kinds of fields, as the target of patches and configurations.
#pragma once

#include <string_view>

#include <boost/json/value.hpp>

namespace keelson::fuzz {

namespace json = boost::json;

extern const char* const kPod;
const json::value& Document();  // kPod, parsed

bool Parse(std::string_view text, json::value& out);

}  // namespace keelson::fuzz
