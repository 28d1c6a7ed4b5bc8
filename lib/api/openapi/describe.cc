// A build step: reads the descriptors of lib/api/proto with their comments (protoc --include_source_info
// --descriptor_set_out) and writes the table of lib/api/openapi/descriptions.h as C++.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.pb.h>

#include "lib/api/openapi/descriptions_table.h"

namespace keelson::api {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;

constexpr std::string_view kPackagePrefix = "keelson.api.";

// Joins a comment's lines into one.
std::string OneLine(std::string_view comment) {
  std::string out;
  bool gap = false;
  for (char c : comment) {
    if (c == ' ' || c == '\n' || c == '\t') {
      gap = !out.empty();
      continue;
    }
    if (gap) out += ' ';
    gap = false;
    out += c;
  }
  return out;
}

class Table {
 public:
  void Add(const FileDescriptorProto& file) {
    // Maps paths in the file to comments; message_type is field 4, field is field 2.
    std::map<std::vector<int>, std::string> comments;
    for (const auto& location : file.source_code_info().location()) {
      if (!location.has_leading_comments()) continue;
      std::vector<int> path(location.path().begin(), location.path().end());
      comments.emplace(std::move(path), OneLine(location.leading_comments()));
    }
    std::string package = file.package().substr(std::min(kPackagePrefix.size(), file.package().size()));
    for (int i = 0; i < file.message_type_size(); ++i) {
      const DescriptorProto& message = file.message_type(i);
      std::vector<std::string>& texts = messages_[package + "." + message.name()];
      texts.push_back(comments[{4, i}]);
      for (int j = 0; j < message.field_size(); ++j) texts.push_back(comments[{4, i, 2, j}]);
    }
  }

  void Write(std::ostream& out) {
    out << "// Generated from the comments in lib/api/proto.\n"
           "#include \"lib/api/openapi/descriptions_table.h\"\n\n"
           "namespace keelson::api::descriptions {\n\n";
    std::string messages, pieces;
    size_t first = 0;
    for (const auto& [name, texts] : messages_) {
      messages += "    {" + PieceOf(name) + ", " + std::to_string(first) + ", " +
                  std::to_string(texts.size() - 1) + "},\n";
      for (const std::string& text : texts) pieces += "    " + PieceOf(text) + ",\n";
      first += texts.size();
    }
    out << "const uint32_t kMessageCount = " << messages_.size() << ";\n"
        << "const Message kMessages[] = {\n"
        << messages << "};\n"
        << "const Piece kPieces[] = {\n"
        << pieces << "};\n"
        << "const char kText[] =\n";
    for (size_t at = 0; at < text_.size(); at += kLine) WriteLiteral(out, text_.substr(at, kLine));
    out << "    \"\";\n\n}  // namespace keelson::api::descriptions\n";
  }

 private:
  static constexpr size_t kLine = 96;

  // Returns `{offset, size}`; equal texts are stored once.
  std::string PieceOf(const std::string& text) {
    auto [it, added] = offsets_.emplace(text, text_.size());
    if (added) text_ += text;
    return "{" + std::to_string(it->second) + ", " + std::to_string(text.size()) + "}";
  }

  static void WriteLiteral(std::ostream& out, const std::string& text) {
    out << "    \"";
    for (char c : text) {
      if (c == '"' || c == '\\') out << '\\';
      out << c;
    }
    out << "\"\n";
  }

  std::map<std::string, std::vector<std::string>> messages_;
  std::map<std::string, size_t> offsets_;
  std::string text_;
};

int Run(const char* input, const char* output) {
  std::ifstream in(input, std::ios::binary);
  FileDescriptorSet set;
  if (!set.ParseFromIstream(&in)) {
    std::fprintf(stderr, "%s: not a descriptor set\n", input);
    return 1;
  }
  Table table;
  for (const FileDescriptorProto& file : set.file()) table.Add(file);
  std::ofstream out(output, std::ios::binary);
  table.Write(out);
  out.close();
  if (!out) std::fprintf(stderr, "%s: cannot be written\n", output);
  return out ? 0 : 1;
}

}  // namespace
}  // namespace keelson::api

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DESCRIPTOR_SET OUTPUT\n", argv[0]);
    return 2;
  }
  return keelson::api::Run(argv[1], argv[2]);
}
