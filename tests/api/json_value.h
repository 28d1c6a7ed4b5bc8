// JSON values for the fixtures: read from YAML, changed by overlays, compared with matchers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

namespace keelson::apitest {

namespace json = boost::json;

// YAML 1.2 core schema. Throws std::runtime_error: a fixture that cannot be read is a bug of its author, and
// what a server sends as YAML is read inside a test.
json::value ParseYaml(std::string_view text);

// What a fixture writes instead of a second whole object. Objects merge key by key, null removes a key. On an
// array an object of indices merges element by element ({0: {...}}; null removes one) and {+: [...]} appends;
// anything else replaces what is there.
json::value Overlay(json::value base, const json::value& change);

// Where `got` is not what was expected: "spec.replicas: expected 3, got 2", one line a place. A string in
// angle brackets in `expected` is a matcher: <any>, <absent>, <uuid>, <time>, <microtime>, <age>, <number>,
// <ip>.
std::vector<std::string> Differences(const json::value& expected, const json::value& got);

// The value at a path of keys, or null.
const json::value* At(const json::value& value, std::initializer_list<std::string_view> path);
std::string StringAt(const json::value& value, std::initializer_list<std::string_view> path);

// A match of a <matcher>.
bool Matches(std::string_view matcher, const json::value& got);

}  // namespace keelson::apitest
