// JSON values of the fixtures: YAML parsing, overlays, and matchers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

namespace keelson::apitest {

namespace json = boost::json;

// YAML 1.2 core schema. Throws std::runtime_error for invalid YAML, which fails the test.
json::value ParseYaml(std::string_view text);

// Applies a change to an object. Objects merge by key; null removes a key. For an array an object of indices
// merges by element ({0: {...}}; null removes one), and {+: [...]} appends; any other value replaces.
json::value Overlay(json::value base, const json::value& change);

// Returns the differences: "spec.replicas: expected 3, got 2", one line each. A string in angle brackets in
// `expected` is a matcher: <any>, <absent>, <uuid>, <time>, <microtime>, <age>, <number>, <ip>.
std::vector<std::string> Differences(const json::value& expected, const json::value& got);

// Returns the value at a path of keys, or null.
const json::value* At(const json::value& value, std::initializer_list<std::string_view> path);
std::string StringAt(const json::value& value, std::initializer_list<std::string_view> path);

// True when `got` matches <matcher>.
bool Matches(std::string_view matcher, const json::value& got);

}  // namespace keelson::apitest
