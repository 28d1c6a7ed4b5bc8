// What clang -target bpf has made, from bytes in memory into the kernel: open, adapt, load. A thin layer over
// libbpf. Not thread safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/bpf/map.h"

struct bpf_object;
struct bpf_program;

namespace keelson::bpf {

class Program {
 public:
  Program() = default;
  explicit Program(const bpf_program* program);
  int fd() const { return fd_; }  // the Object's
  const std::string& name() const { return name_; }
  uint32_t attach_type() const { return attach_type_; }

  struct Output {
    uint32_t result = 0;
    std::string packet, context;
  };
  // Runs it on a packet (or a context alone), as BPF_PROG_TEST_RUN does.
  Result<Output> TestRun(std::string_view packet, std::string_view context = {}) const;

 private:
  int fd_ = -1;
  std::string name_;
  uint32_t attach_type_ = 0;
};

class Object {
 public:
  // `elf` has to stay as long as the object.
  static Result<Object> Open(std::string_view elf, const std::string& name);

  // Before Load().
  Result<> SetMaxEntries(const std::string& map, uint32_t entries);
  // Uses a map that is there. kInvalid when its keys, values or kind are others.
  Result<> Reuse(const std::string& map, const Map& existing);
  // Of a `const volatile` variable.
  Result<> SetConstant(const std::string& variable, std::string_view value);

  // When the kernel refuses a program, the error has the last lines of what the verifier says, and log() all
  // of it.
  Result<> Load();
  const std::string& log() const { return log_; }

  // After Load().
  Result<Map> GetMap(const std::string& name) const;
  Result<Program> GetProgram(const std::string& name) const;
  std::vector<Program> Programs() const;
  std::vector<std::string> MapNames() const;  // without those of variables

 private:
  struct Closer {
    void operator()(bpf_object* object) const;
  };
  explicit Object(bpf_object* object) : object_(object) {}
  std::unique_ptr<bpf_object, Closer> object_;
  std::string log_;
};

}  // namespace keelson::bpf
