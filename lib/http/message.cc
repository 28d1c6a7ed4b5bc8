#include "lib/http/message.h"

#include <algorithm>

namespace keelson::http {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 && HexValue(text[i + 2]) >= 0) {
      out += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

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

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return Lower(x) == Lower(y); });
}

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
    query.Add(Decode(pair.substr(0, equals), true), Decode(value, true));
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

std::string PercentDecode(std::string_view text) { return Decode(text, false); }

std::string PercentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    bool unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

}  // namespace keelson::http
