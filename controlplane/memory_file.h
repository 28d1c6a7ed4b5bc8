// A file in memory, which only this process can name, for libraries that read files.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::controlplane {

class MemoryFile {
 public:
  // `name` is for people who look into /proc.
  static Result<MemoryFile> Make(const char* name, const std::string& content);

  // Valid as long as the file lives.
  const std::string& path() const { return path_; }
  // Readers see the old content or the new one, never a part.
  Result<> Replace(const std::string& content);
  // Keeps the file for the life of the process, and returns its path.
  std::string Keep() &&;

 private:
  MemoryFile(const char* name, UniqueFd fd);

  const char* name_;
  UniqueFd fd_;
  std::string path_;
};

}  // namespace keelson::controlplane
