// Types that requests and responses share. No protocol details, no foreign headers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace keelson::http {

// Headers in order of arrival; names compare case-insensitively and may repeat.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> items) : items_(items) {}

  void Add(std::string name, std::string value) { items_.emplace_back(std::move(name), std::move(value)); }
  void Set(std::string name, std::string value);  // replaces all headers of that name
  void Remove(std::string_view name);
  std::string_view Get(std::string_view name) const;  // first one; empty when absent
  bool Has(std::string_view name) const;
  std::vector<std::string_view> All(std::string_view name) const;
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<std::pair<std::string, std::string>> items_;
};

// Query parameters, decoded, in order; a name may repeat.
class Query {
 public:
  static Query Parse(std::string_view raw);
  void Add(std::string name, std::string value) { items_.emplace_back(std::move(name), std::move(value)); }
  std::string_view Get(std::string_view name) const;  // first one; empty when absent
  bool Has(std::string_view name) const;
  std::vector<std::string_view> All(std::string_view name) const;
  // true for "1", "t", "T", "true", "TRUE", "True", as Go's ParseBool; an absent parameter is false.
  bool GetBool(std::string_view name) const;
  std::string ToString() const;  // encoded, without '?'
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<std::pair<std::string, std::string>> items_;
};

}  // namespace keelson::http
