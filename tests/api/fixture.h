// A fixture: what one resource takes, answers and refuses, written by hand in YAML. README.md describes its
// keys.
#pragma once

#include <string>
#include <vector>

#include "lib/api/scheme.h"
#include "tests/api/json_value.h"

namespace keelson::apitest {

struct Fixture {
  std::string name;                         // core_configmaps
  const api::ResourceInfo* info = nullptr;  // never null once loaded
  json::object text;

  const json::value* Find(std::string_view key) const { return text.if_contains(key); }
  bool Flag(std::string_view key, bool otherwise) const {
    const json::value* value = Find(key);
    return value && value->is_bool() ? value->as_bool() : otherwise;
  }
  std::string Namespace() const;  // of its own; empty for cluster-scoped resources without `namespace`
  const json::object& Create() const { return Find("create")->as_object(); }
};

// apps/v1/deployments, v1/pods; null when there is none.
const api::ResourceInfo* FindResource(const std::string& text);

// All files below `directory`, sorted. Aborts with the file's name when one cannot be read.
std::vector<std::string> FixtureFiles(const std::string& directory);
Fixture LoadFixture(const std::string& file);
std::string FixtureName(const std::string& file);  // core/configmaps.yaml -> core_configmaps

}  // namespace keelson::apitest
