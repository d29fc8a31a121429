// A launch: the program in device memory names the folder it was compiled in; spyre_standin carries it out in Python.
#include <Python.h>

#include <cstdlib>
#include <flex/flex.hpp>
#include <stdexcept>

// Where bin/ and spyre_standin/ lie: given when this library is built.
#ifndef SPYRE_STANDIN_HOME
#error "build with -DSPYRE_STANDIN_HOME=the folder tests/real_card"
#endif

// Loaded with torch_spyre._C, so before anything is compiled: the command dxp_standalone is on PATH, and the hook that
// remembers each program's OpSpecs is in place. Nothing of torch_spyre or of the environment is changed on disk.
static const char* const PREPARE =
    "import os, sys\n"
    "home = os.environ.get('SPYRE_STANDIN_HOME', %s)\n"
    "sys.path.append(home)\n"
    "os.environ['PATH'] = os.path.join(home, 'bin') + os.pathsep + os.environ.get('PATH', '')\n"
    "import spyre_standin.hooks\n"
    "spyre_standin.hooks.install()\n";

namespace {
struct Gil {
  PyGILState_STATE state = PyGILState_Ensure();
  ~Gil() { PyGILState_Release(state); }
};

__attribute__((constructor)) void prepare() {
  if (!Py_IsInitialized()) return;
  Gil held;
  std::string text(PREPARE), home = "'" SPYRE_STANDIN_HOME "'";
  text.replace(text.find("%s"), 2, home);
  PyObject* scope = PyDict_New();
  PyDict_SetItemString(scope, "__builtins__", PyEval_GetBuiltins());
  PyObject* done = PyRun_String(text.c_str(), Py_file_input, scope, scope);
  Py_DECREF(scope);
  if (done) Py_DECREF(done);
  else PyErr_Print();
}

// The exception of Python that is set, as text; it is cleared.
std::string python_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* words = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string error = words ? words : "unknown";
  if (type) error = std::string(reinterpret_cast<PyTypeObject*>(type)->tp_name) + ": " + error;
  Py_XDECREF(text);
  if (std::getenv("SPYRE_STANDIN_TRACE")) {
    PyErr_Restore(type, value, trace);
    PyErr_Print();
  } else {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  }
  PyErr_Clear();
  return error;
}
}  // namespace

namespace flex {
// In device memory: the number of addresses, the addresses (the corrected region), and at `bootstrap` the folder's name.
void RuntimeStream::launchOperationCompute(ComputeParams* params) {
  const char* base = static_cast<const char*>(params->program->host());
  const int64_t* head = reinterpret_cast<const int64_t*>(base);
  std::string error;
  {
    Gil held;
    PyObject* addresses = PyList_New(0);
    auto add = [&](uint64_t address) {
      PyObject* number = PyLong_FromUnsignedLongLong(address);
      PyList_Append(addresses, number);
      Py_DECREF(number);
    };
    if (!params->tensors.empty())
      for (auto* tensor : params->tensors) add(reinterpret_cast<uint64_t>(tensor->host()));
    else if (params->bootstrap)
      for (int64_t i = 0; i < head[0]; ++i) add(static_cast<uint64_t>(head[1 + i]));
    PyObject* card = PyImport_ImportModule("spyre_standin.card");
    PyObject* done = card ? PyObject_CallMethod(card, "launch", "sO", base + params->bootstrap, addresses) : nullptr;
    if (!done) error = python_error();
    Py_XDECREF(done);
    Py_XDECREF(card);
    Py_DECREF(addresses);
  }
  if (!error.empty()) throw std::runtime_error(error);
}
}  // namespace flex
