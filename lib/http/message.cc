#include "lib/http/message.h"

#include <algorithm>

#include "lib/base/percent.h"
#include "lib/base/text.h"

namespace keelson::http {
namespace {

template <typename Items>
std::string_view First(const Items& items, std::string_view name,
                       bool (*same)(std::string_view, std::string_view)) {
  for (const auto& [key, value] : items) {
    if (same(key, name)) return value;
  }
  return {};
}

bool Same(std::string_view a, std::string_view b) { return a == b; }

}  // namespace

void Headers::Set(std::string name, std::string value) {
  Remove(name);
  Add(std::move(name), std::move(value));
}

void Headers::Remove(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return EqualsIgnoreCase(item.first, name); });
}

std::string_view Headers::Get(std::string_view name) const { return First(items_, name, EqualsIgnoreCase); }

bool Headers::Has(std::string_view name) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const auto& i) { return EqualsIgnoreCase(i.first, name); });
}

std::vector<std::string_view> Headers::All(std::string_view name) const {
  std::vector<std::string_view> out;
  for (const auto& [key, value] : items_) {
    if (EqualsIgnoreCase(key, name)) out.push_back(value);
  }
  return out;
}

Query Query::Parse(std::string_view raw) {
  Query query;
  while (!raw.empty()) {
    size_t end = raw.find('&');
    std::string_view pair = raw.substr(0, end);
    raw = end == std::string_view::npos ? std::string_view() : raw.substr(end + 1);
    if (pair.empty()) continue;
    size_t equals = pair.find('=');
    std::string_view value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    query.Add(QueryDecode(pair.substr(0, equals)), QueryDecode(value));
  }
  return query;
}

std::string_view Query::Get(std::string_view name) const { return First(items_, name, Same); }

bool Query::Has(std::string_view name) const {
  return std::any_of(items_.begin(), items_.end(), [&](const auto& item) { return item.first == name; });
}

std::vector<std::string_view> Query::All(std::string_view name) const {
  std::vector<std::string_view> out;
  for (const auto& [key, value] : items_) {
    if (key == name) out.push_back(value);
  }
  return out;
}

bool Query::GetBool(std::string_view name) const {
  std::string_view value = Get(name);
  return value == "1" || value == "t" || value == "T" || value == "true" || value == "TRUE" ||
         value == "True";
}

std::string Query::ToString() const {
  std::string out;
  for (const auto& [key, value] : items_) {
    if (!out.empty()) out += '&';
    out += PercentEncode(key) + "=" + PercentEncode(value);
  }
  return out;
}

}  // namespace keelson::http
